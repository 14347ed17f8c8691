"""The paper's tables and figures, one file each; `RECIPES` has them in the paper's order."""

from slimfl.experiments.exhibit import Recipe
from slimfl.experiments.exhibits.choices import CHOICES
from slimfl.experiments.exhibits.fig2 import FIG2
from slimfl.experiments.exhibits.fig3 import FIG3
from slimfl.experiments.exhibits.fig4 import FIG4
from slimfl.experiments.exhibits.fig5 import FIG5
from slimfl.experiments.exhibits.fig6 import FIG6
from slimfl.experiments.exhibits.fig7 import FIG7
from slimfl.experiments.exhibits.table1 import TABLE1
from slimfl.experiments.exhibits.table3 import TABLE3
from slimfl.experiments.exhibits.table4 import TABLE4
from slimfl.experiments.exhibits.table5 import TABLE5
from slimfl.experiments.exhibits.table6 import TABLE6
from slimfl.experiments.exhibits.table7 import TABLE7
from slimfl.experiments.exhibits.vanilla import VANILLA

#: By name; the last two are ours: what no source settles, and why Vanilla FL differs.
RECIPES: dict[str, Recipe] = {
    recipe.name: recipe
    for recipe in (
        TABLE1, TABLE3, TABLE4, TABLE5, TABLE6, TABLE7, FIG2, FIG3, FIG4, FIG5, FIG6, FIG7, CHOICES,
        VANILLA,
    )
}  # fmt: skip

__all__ = ["RECIPES"]
