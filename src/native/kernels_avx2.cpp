#define SLIMFL_LEVEL avx2
#include "level.h"
