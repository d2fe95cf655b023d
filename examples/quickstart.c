#include <embank.h>
#include <stdio.h>

int main(void) {
  embank_store* store = NULL;
  embank_table* items = NULL;
  embank_table_options options;
  uint64_t keys[3] = {7, 42, 7};
  float rows[3][4], gradients[3][4] = {{1, 1, 1, 1}, {2, 2, 2, 2}, {3, 3, 3, 3}};

  embank_table_options_init(&options, sizeof options);
  options.dim = 4;
  options.optimizer = EMBANK_OPT_SGD;
  options.learning_rate = 0.5f;

  if (embank_store_open(NULL, &store) != EMBANK_OK ||
      embank_table_create(store, "items", &options, &items) != EMBANK_OK ||
      embank_lookup(items, keys, 3, EMBANK_MISSING_CREATE, rows, 0, NULL) != EMBANK_OK ||
      embank_apply_gradients(items, keys, 3, gradients[0], 0, NULL) != EMBANK_OK ||
      embank_lookup(items, keys, 3, EMBANK_MISSING_ZERO, rows, 0, NULL) != EMBANK_OK) {
    fprintf(stderr, "embank: %s\n", embank_last_error());
    return 1;
  }
  printf("7: %g, 42: %g\n", rows[0][0], rows[1][0]); /* 7: -2, 42: -1 */
  return embank_store_close(store) != EMBANK_OK;
}
