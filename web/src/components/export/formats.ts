/** The files that the service can write. */
import type { components } from "../../api/schema";

export type Format = components["schemas"]["ExportCreate"]["format"];

export interface FormatInfo {
  name: string;
  about: string;
}

export const FORMATS: Record<Format, FormatInfo> = {
  csv: { name: "CSV", about: "A table for spreadsheets: a line per photo with its group." },
  jsonl: { name: "JSON lines", about: "A JSON object per photo, for scripts." },
  parquet: { name: "Parquet", about: "A typed table for pandas, DuckDB or Spark." },
  image_folder: { name: "Folders of photos", about: "The photos in a zip, one folder per group." },
  coco: { name: "COCO", about: "Annotations with links to the photos." },
  coco_images: { name: "COCO with photos", about: "The same, with the photos in the zip." },
  yolo: { name: "YOLO", about: "A classification set for Ultralytics, photos included." },
  huggingface: { name: "Hugging Face", about: "Photos, labels and a dataset card." },
  label_studio: { name: "Label Studio", about: "Tasks with predictions, and the labeling configuration." },
  cvat: { name: "CVAT", about: "The photos, their tags, and the labels of a task." },
};
