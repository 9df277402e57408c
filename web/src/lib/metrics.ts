/** Figures of a model version or clustering that people ask for first. */
interface Figure {
  name: string;
  about: string;
  value: number;
}

const FIGURES: [path: string, name: string, about: string][] = [
  ["temi.accuracy", "Accuracy", "share of photos whose group matches their true label"],
  ["temi.nmi", "NMI", "normalized mutual information with the true labels"],
  ["temi.ari", "ARI", "adjusted Rand index with the true labels"],
  ["mean_probability", "Mean probability", "how sure the model is, on average"],
  ["size_kl", "Size KL", "distance from groups of equal size; 0: equal"],
  ["empty_clusters", "Empty groups", "groups without a photo"],
];

function at(metrics: unknown, path: string): unknown {
  return path.split(".").reduce<unknown>((value, key) => (typeof value === "object" && value !== null ? (value as Record<string, unknown>)[key] : undefined), metrics);
}

export function figures(metrics: unknown): Figure[] {
  return FIGURES.flatMap(([path, name, about]) => {
    const value = at(metrics, path);
    return typeof value === "number" ? [{ name, about, value }] : [];
  });
}

/** The metrics of a version, which its manifest holds. */
export const metricsOf = (manifest: Record<string, unknown>): unknown => manifest.metrics ?? {};

/** "temi.accuracy" as people read it. */
export function figureName(path: string): string {
  const known = FIGURES.find(([key]) => path === key || path === `metrics.${key}`);
  return known?.[1] ?? path.replace(/^(metrics|config)\./, "").replaceAll("_", " ");
}

export function shownFigure(value: unknown): string {
  if (typeof value === "number") return Number.isInteger(value) ? String(value) : value.toFixed(3);
  if (value === null || value === undefined) return "–";
  return typeof value === "string" ? value : JSON.stringify(value);
}
