import type { IncomingMessage, ServerResponse } from 'node:http';
import { json } from 'node:stream/consumers';
import { GIT_HOST, PULL_REQUEST_API, PULL_REQUEST_REPOSITORY, REPOSITORY_TOKEN } from './addresses.ts';

const PULLS = `${new URL(PULL_REQUEST_API).pathname}/repos/${PULL_REQUEST_REPOSITORY}/pulls`;

interface PullRequest {
  number: number;
  html_url: string;
  title: string;
  state: 'open';
  head: { ref: string };
  base: { ref: string };
}

/** The pull requests of one repository, over the part of Gitea's interface that lists and opens them. */
export class PullRequestApi {
  readonly #pulls: PullRequest[] = [];

  async answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { pathname } = new URL(request.url ?? '', `https://${GIT_HOST}`);
    const body = request.method === 'POST' ? ((await json(request)) as Record<string, string>) : undefined;
    const send = (status: number, value: unknown) =>
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value));
    if (request.headers.authorization?.endsWith(` ${REPOSITORY_TOKEN}`) !== true) send(401, { message: 'no token' });
    else if (pathname !== PULLS) send(404, { message: 'not found' });
    else if (body === undefined) send(200, this.#pulls);
    else send(201, this.#open(body));
  }

  #open({ head = '', base = '', title = '' }: Record<string, string>): PullRequest {
    const number = this.#pulls.length + 1;
    const page = `https://${GIT_HOST}/${PULL_REQUEST_REPOSITORY}/pulls/${number}`;
    const pull = { number, html_url: page, title, state: 'open', head: { ref: head }, base: { ref: base } } as const;
    this.#pulls.push(pull);
    return pull;
  }
}
