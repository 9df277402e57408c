/** Requests of the review. */
import { request } from "./client";
import type { AnswerCreate, ReviewQueue, ReviewReport, StoredAnswers } from "./types";

const path = (clusteringId: string): string => `/v1/clusterings/${encodeURIComponent(clusteringId)}/review`;

export type Proof = ReviewReport["proof"];

export async function readReview(clusteringId: string, minPurity: number, proof: Proof): Promise<ReviewReport> {
  return (await (await request(`${path(clusteringId)}?min_purity=${minPurity}&proof=${proof}`)).json()) as ReviewReport;
}

export async function readQueue(clusteringId: string, minPurity: number, proof: Proof, labeler: string, limit: number): Promise<ReviewQueue> {
  const query = new URLSearchParams({ min_purity: String(minPurity), proof, labeler, limit: String(limit) });
  return (await (await request(`${path(clusteringId)}/queue?${query}`)).json()) as ReviewQueue;
}

export async function sendAnswers(clusteringId: string, answers: AnswerCreate[]): Promise<StoredAnswers> {
  const response = await request(`${path(clusteringId)}/answers`, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ answers }),
  });
  return (await response.json()) as StoredAnswers;
}

export async function withdrawAnswer(clusteringId: string, imageId: string): Promise<void> {
  await request(`${path(clusteringId)}/answers/${encodeURIComponent(imageId)}`, { method: "DELETE" });
}
