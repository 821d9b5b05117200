# Files that were asked for and that no rule makes, where the path tells what was meant: Snakemake says only that there
# is no rule. Where another workflow takes this one as a module, its own rules may make what this one does not.
if Path(workflow.basedir) in (CHECKOUT, CHECKOUT / "workflow"):

    rule unmade_figure:
        input:
            asks(explain_figure),
        output:
            "plots/{unmade}",
        wildcard_constraints:
            unmade=f"(?!{made_figures()}$).+",

    rule other_scale:
        input:
            asks(lambda wildcards: refuse_scale(f"results/{wildcards.other}/{wildcards.rest}", wildcards.other)),
        output:
            "results/{other}/{rest}",
        wildcard_constraints:
            other="|".join(map(re.escape, OTHER_SCALES)) or "(?!)",
            rest=".+",
