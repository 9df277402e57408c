// Calls the service with the types that openapi-typescript generates; prints what it got as JSON.
import createClient from "openapi-fetch";
import type { components, paths } from "./api";

const client = createClient<paths>({ baseUrl: process.argv[2]! });
const image = new Blob([Buffer.from(process.argv[3]!, "base64")]);

async function main(): Promise<void> {
  const datasets = await client.GET("/v1/datasets", { params: { query: { limit: 10 } } });
  const dataset: components["schemas"]["Dataset"] = datasets.data!.data[0]!;
  const body: components["schemas"]["JobCreate"] = { kind: "cluster", dataset_id: dataset.id, n_clusters: 2, seed: 0 };
  const job = await client.POST("/v1/jobs", { body });
  const cancelled = await client.POST("/v1/jobs/{job_id}:cancel", { params: { path: { job_id: job.data!.id } } });
  const predicted = await client.POST("/v1/models/{name}:predict", {
    params: { path: { name: "cats-dogs" } },
    body: { files: [] },
    bodySerializer: () => {
      const form = new FormData();
      form.append("files", image, "new.jpg");
      return form;
    },
  });
  const missing = await client.GET("/v1/jobs/{job_id}", { params: { path: { job_id: "job_1" } } });
  const predictions = predicted.data as components["schemas"]["Predictions"];
  console.log(JSON.stringify({
    images: dataset.image_count,
    kind: job.data!.kind,
    status: cancelled.data!.status,
    label: predictions.data[0]!.label,
    code: missing.error!.code,
  }));
}

main().catch((error) => { console.error(error); process.exit(1); });
