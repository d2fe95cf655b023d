"""Prints "total failed skipped" of a ctest JUnit file; exits 1 when there is none."""
import sys
import xml.etree.ElementTree

try:
    suite = xml.etree.ElementTree.parse(sys.argv[1]).getroot()
except (OSError, xml.etree.ElementTree.ParseError) as error:
    sys.exit(f'no test results: {error}')
print(suite.get('tests'), suite.get('failures'),
      int(suite.get('skipped')) + int(suite.get('disabled')))
