#define SLIMFL_LEVEL avx512
#include "level.h"
