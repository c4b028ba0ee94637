import { parseDocuments } from '../../../api/yaml-documents.ts';
import { type Connection, gitConnectionFor, parseConnections } from '../../../connections/connection.ts';
import { systemClock } from '../../../lib/clock.ts';
import { TemperError } from '../../../lib/errors.ts';
import { isJsonObject } from '../../../lib/json.ts';
import { printable } from '../../../lib/printable.ts';
import { pullRequestDraft } from '../../../review/pull-requests/draft.ts';
import { openPullRequest } from '../../../review/pull-requests/open-pull-request.ts';
import type { PullRequest } from '../../../review/pull-requests/port.ts';
import { pullRequestServer } from '../../../review/pull-requests/servers.ts';
import type { ToolReview } from '../../../review/tool-review.ts';
import { readInputFile } from '../../input/input-files.ts';
import { type CliIo, EXIT, writeJsonLine } from '../../io.ts';

export interface ProposeOptions {
  connection?: string;
  /** File with `connections`. */
  connections?: string;
  branch?: string;
  path?: string;
  output?: 'text' | 'json';
}

const TIMEOUT_MS = 120_000;
const NEXT: Readonly<Record<PullRequest['state'], string>> = {
  Open: 'merging it applies the decision',
  Merged: 'it is merged',
  Closed: 'it was closed without a merge; reopen it on the server to decide again',
};

/** Opens the pull request of a promotion, or prints the state of the one that exists. */
export async function proposeInRepository(review: ToolReview, options: ProposeOptions, io: CliIo): Promise<number> {
  const { connection: name, connections: file, branch = 'main', path = '' } = options;
  if (name === undefined || file === undefined) throw usage('--connection NAME and --connections FILE belong together');
  const connection = gitConnectionFor(await readConnections(file, io), name, review.namespace);
  const op = { signal: io.signal, deadline: systemClock.monotonic() + TIMEOUT_MS, key: review.promotion.nonce };
  const server = pullRequestServer(connection, { clock: systemClock });
  const { number, url, state } = await openPullRequest(server, pullRequestDraft(review, { branch, path }), op);
  if (options.output === 'json') {
    const { artifact, digest, namespace } = review;
    writeJsonLine(io, { tool: artifact.name, digest, namespace, pullRequest: { number, url, state } });
  } else
    io.out(`${review.artifact.name}: pull request ${printable(url, 400)} is ${state.toLowerCase()}; ${NEXT[state]}\n`);
  return EXIT.ok;
}

async function readConnections(file: string, io: CliIo): Promise<Connection[]> {
  const { documents, errors } = parseDocuments(await readInputFile(file, '--connections', io));
  const shown = printable(file, 200);
  const [error] = errors;
  if (error !== undefined) {
    throw usage(`${shown}:${error.position.line}:${error.position.column}: ${error.message}; ${error.fix}`);
  }
  const [value] = documents.map((document) => document.value);
  if (isJsonObject(value) && 'connections' in value) return parseConnections(value['connections'], shown);
  throw usage(`${shown} has no list "connections"`);
}

function usage(message: string): TemperError {
  return new TemperError('TEMPER_USAGE', message);
}
