int Own();
int Own() { return 7; }
