/** Commands that do the same as the page, to copy. */

/** A text as one word of a shell. */
export const shell = (text: string): string => (/^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`);

interface Call {
  origin: string;
  model: string; // "flowers" or "flowers@production"
  version: number | null;
  withKey: boolean;
  neighbors: number;
  falseAlarmRate: number | null; // of refused photos; null refuses none
}

function path(call: Call): string {
  const name = encodeURIComponent(call.model).replaceAll("%40", "@");
  return call.version === null ? `/v1/models/${name}:predict` : `/v1/models/${name}/versions/${call.version}:predict`;
}

export function curlCall(call: Call): string {
  const lines = [`curl ${shell(`${call.origin}${path(call)}?top_k=3&neighbors=${call.neighbors}${call.falseAlarmRate ? `&false_alarm_rate=${call.falseAlarmRate}` : ""}`)}`];
  if (call.withKey) lines.push(`  -H "Authorization: Bearer $TEMI_API_KEY"`);
  lines.push("  -F files=@photo.jpg");
  return lines.join(" \\\n");
}

export function pythonCall(call: Call): string {
  const headers = call.withKey ? `\n    headers={"Authorization": f"Bearer {os.environ['TEMI_API_KEY']}"},` : "";
  return `${call.withKey ? "import os\n\n" : ""}import httpx

answer = httpx.post(
    ${JSON.stringify(`${call.origin}${path(call)}`)},
    params={"top_k": 3, "neighbors": ${call.neighbors}${call.falseAlarmRate ? `, "false_alarm_rate": ${call.falseAlarmRate}` : ""}},
    files=[("files", open("photo.jpg", "rb"))],${headers}
    timeout=60,
)
answer.raise_for_status()
for photo in answer.json()["data"]:
    print(photo["image"], photo["label"], photo["probability"])
`;
}
