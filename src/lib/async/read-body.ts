/** The whole stream as UTF-8 text. Throws as `readBytes` does. */
export async function readBody(
  stream: AsyncIterable<Uint8Array>,
  maxBytes: number,
  tooLarge: () => Error,
): Promise<string> {
  return (await readBytes(stream, maxBytes, tooLarge)).toString('utf8');
}

/** The whole stream. Throws `tooLarge()` as soon as the stream has more bytes than the limit. */
export async function readBytes(
  stream: AsyncIterable<Uint8Array>,
  maxBytes: number,
  tooLarge: () => Error,
): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of stream) {
    size += chunk.byteLength;
    if (size > maxBytes) throw tooLarge();
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}
