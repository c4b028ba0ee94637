import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { answerGit } from '../../../manifests/local/shared/git-backend.ts';

/** Git's own HTTP server on loopback, for one bare repository. */
export interface GitHttpServer extends AsyncDisposable {
  /** `http://localhost:PORT/repository.git` */
  readonly url: string;
  readonly port: number;
  /** The path and query of each request. */
  readonly requests: string[];
}

const PREFIX = '/repository.git';

interface GitHttpServerOptions {
  /** With these it speaks TLS. */
  tls?: { key: string; cert: string };
  /** The value of `authorization` that may also push. Absent: none may. */
  authorization?: string;
  /** Answers a request in place of Git; returns false to let Git answer. */
  hostile?: (request: IncomingMessage, response: ServerResponse) => boolean;
}

/** Serves the repository with `git http-backend`. Paths outside of it are not found. */
export async function startGitHttpServer(
  repository: string,
  { tls, authorization, hostile = () => false }: GitHttpServerOptions = {},
): Promise<GitHttpServer> {
  const requests: string[] = [];
  const listener = (request: IncomingMessage, response: ServerResponse): void => {
    requests.push(request.url ?? '');
    if (hostile(request, response)) return;
    const user = authorization !== undefined && request.headers.authorization === authorization ? 'user' : undefined;
    answerGit({ repository, prefix: PREFIX, user }, request, response).catch((error: unknown) =>
      response.destroy(error as Error),
    );
  };
  const server = tls === undefined ? createServer(listener) : createSecureServer(tls, listener);
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  const { port } = server.address() as AddressInfo;
  return {
    url: `${tls === undefined ? 'http' : 'https'}://localhost:${port}${PREFIX}`,
    port,
    requests,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((done) => server.close(done));
    },
  };
}
