import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';
import { conceptVector } from './concept-vectors.ts';

/** A server of `/v1/embeddings` whose vectors are those of `conceptVector`. */
export interface EmbeddingServer extends AsyncDisposable {
  /** With `/v1`. */
  readonly url: string;
  /** The texts of each request. */
  readonly requests: string[][];
  /** The status of the next answers; 200: vectors. */
  status: number;
  dimensions: number | undefined;
}

export async function startEmbeddingServer(): Promise<EmbeddingServer> {
  const requests: string[][] = [];
  const state = { status: 200, dimensions: undefined as number | undefined };
  const server = createServer((request, response) => {
    const answer = async (): Promise<void> => {
      const body = await json(request);
      const { input } = body as { input: string[] };
      requests.push(input);
      const data = input.map((text, index) => ({
        object: 'embedding',
        index,
        embedding: Array.from(conceptVector(text, state.dimensions)),
      }));
      const usage = { prompt_tokens: input.join(' ').length, total_tokens: input.join(' ').length };
      const text = state.status === 200 ? { object: 'list', data, usage } : { error: { message: 'refused' } };
      response.writeHead(state.status, { 'content-type': 'application/json' }).end(JSON.stringify(text));
    };
    void answer();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}/v1`,
    requests,
    get status() {
      return state.status;
    },
    set status(status) {
      state.status = status;
    },
    get dimensions() {
      return state.dimensions;
    },
    set dimensions(dimensions) {
      state.dimensions = dimensions;
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
