"""The paper's tables and figures, one file each; `RECIPES` has them in the paper's order."""

from lab.reproduction.exhibits.choices import CHOICES
from lab.reproduction.exhibits.exhibit import Recipe
from lab.reproduction.exhibits.fig2 import FIG2
from lab.reproduction.exhibits.fig3 import FIG3
from lab.reproduction.exhibits.fig4 import FIG4
from lab.reproduction.exhibits.fig5 import FIG5
from lab.reproduction.exhibits.fig6 import FIG6
from lab.reproduction.exhibits.fig7 import FIG7
from lab.reproduction.exhibits.table1 import TABLE1
from lab.reproduction.exhibits.table3 import TABLE3
from lab.reproduction.exhibits.table4 import TABLE4
from lab.reproduction.exhibits.table5 import TABLE5
from lab.reproduction.exhibits.table6 import TABLE6
from lab.reproduction.exhibits.table7 import TABLE7
from lab.reproduction.exhibits.vanilla import VANILLA

#: By name; the last two are our own studies: open choices, and why Vanilla FL differs.
RECIPES: dict[str, Recipe] = {
    recipe.name: recipe
    for recipe in (
        TABLE1, TABLE3, TABLE4, TABLE5, TABLE6, TABLE7, FIG2, FIG3, FIG4, FIG5, FIG6, FIG7, CHOICES,
        VANILLA,
    )
}  # fmt: skip

__all__ = ["RECIPES"]
