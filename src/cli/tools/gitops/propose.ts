import { parseDocuments } from '../../../api/yaml-documents.ts';
import {
  type Connection,
  type GitConnection,
  gitConnectionFor,
  parseConnections,
} from '../../../connections/connection.ts';
import { systemClock } from '../../../lib/clock.ts';
import { TemperError } from '../../../lib/errors.ts';
import { isJsonObject } from '../../../lib/json.ts';
import { printable } from '../../../lib/printable.ts';
import { proposalOf, pullRequestDraft } from '../../../review/pull-requests/draft.ts';
import type { PullRequest } from '../../../review/pull-requests/port.ts';
import { repositoryOf } from '../../../review/pull-requests/servers.ts';
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
  Merged: 'the base branch has its files',
  Closed: 'it was closed without a merge; reopen it on the server to decide again',
};

/** The connection of the options. Throws TEMPER_USAGE, TEMPER_CONFIGURATION_INVALID and TEMPER_CONNECTION_DENIED. */
export async function openConnection(options: ProposeOptions, namespace: string, io: CliIo): Promise<GitConnection> {
  const { connection: name, connections: file } = options;
  if (name === undefined || file === undefined) throw usage('--connection NAME and --connections FILE belong together');
  return gitConnectionFor(await readConnections(file, io), name, namespace);
}

/** Opens the pull request of a promotion, or prints the state of the one that exists. */
export async function proposeInRepository(
  review: ToolReview,
  connection: GitConnection,
  options: ProposeOptions,
  io: CliIo,
): Promise<number> {
  const { branch = 'main', path = '' } = options;
  const op = { signal: io.signal, deadline: systemClock.monotonic() + TIMEOUT_MS, key: review.promotion.nonce };
  const repository = repositoryOf(connection, { clock: systemClock });
  const proposal = proposalOf(pullRequestDraft(review, { branch, path }));
  const { number, url, state } = await repository.propose(proposal, op);
  if (options.output === 'json') {
    const { artifact, digest, namespace } = review;
    writeJsonLine(io, {
      tool: artifact.name,
      digest,
      namespace,
      pullRequest: { ...(number === undefined ? {} : { number }), url, state },
    });
  } else
    io.out(
      `${review.artifact.name}: ${number === undefined ? 'branch' : 'pull request'} ${printable(url, 400)} is ${state.toLowerCase()}; ${NEXT[state]}\n`,
    );
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
