"""`temi models calibrate`, `calibration`, `drift` and `plot`: how far a version can be trusted."""

from typing import Annotated, Literal

import typer

from app.cli.connection import connect
from app.cli.options import AsJson, Name, OutFile, VersionNumber
from app.cli.output import notices, print_item, print_table, write_bytes
from temi_client import VersionPlotName

app = typer.Typer()


@app.command()
def calibrate(
    ctx: typer.Context, name: Name, version: VersionNumber, as_json: AsJson = False
) -> None:
    """Fit the probabilities of a version to the reviews of its clusterings."""
    with connect(ctx) as client:
        found = client.calibrate(name, version)
    print_item(found, as_json, f"Calibration {found.number} of {name}, version {version}")


@app.command()
def calibration(
    ctx: typer.Context, name: Name, version: VersionNumber, as_json: AsJson = False
) -> None:
    """Show how often labels of a probability were right in reviews."""
    with connect(ctx) as client:
        found = client.calibration(name, version)
    if as_json:
        return print_item(found, as_json, "")
    reliability = found.reliability
    if reliability is None:
        return notices.print(
            f"Calibrated by its {found.source}; no image of its clusterings is reviewed yet."
        )
    rows = [(f"{b.probability:.1%}", f"{b.accuracy:.1%}", b.images) for b in reliability.bins]
    print_table(
        f"Reliability of {name}, version {version}", [">probability", ">right", ">images"], rows
    )
    return notices.print(
        f"Calibrated by its {found.source}; error {reliability.error:.1%} "
        f"({reliability.error_by_chance:.1%} by chance)."
    )


@app.command()
def drift(
    ctx: typer.Context,
    name: Name,
    version: VersionNumber,
    days: Annotated[int, typer.Option(min=1, max=366, help="Days to look back.")] = 30,
    as_json: AsJson = False,
) -> None:
    """Show whether new images are like those of the training."""
    with connect(ctx) as client:
        found = client.drift(name, version, days=days)
    if as_json:
        return print_item(found, as_json, "")
    rows = [
        (str(each.day), each.images, f"{each.novel / each.images:.1%}")
        for each in found.days
        if each.images
    ]
    title = f"Images of {name}, version {version}; 10 % novel are normal"
    print_table(title, ["day", ">images", ">novel"], rows)
    return notices.print(found.summary)


@app.command()
def plot(
    ctx: typer.Context,
    name: Name,
    version: VersionNumber,
    plot_name: Annotated[VersionPlotName, typer.Argument(metavar="PLOT", help="Name of the plot.")],
    out: OutFile,
) -> None:
    """Download a plot of a version (PNG, or SVG if --out ends with .svg)."""
    kind: Literal["png", "svg"] = "svg" if out.suffix.lower() == ".svg" else "png"
    with connect(ctx) as client:
        write_bytes(out, client.version_plot(name, version, plot_name, format=kind))
