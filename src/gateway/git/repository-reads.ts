import type { RepositoryQuestion } from '../../gateway-api/repositories/repository-api.ts';
import { EVERYTHING, type PackLimits, readPack } from '../../git/pack/pack-reader.ts';
import type { GitRemote, SentPack } from '../../git/remote.ts';
import type { CallOptions } from '../../lib/call-options.ts';
import type { Json } from '../../lib/json.ts';
import { assertNoCredential } from '../../toolbox/git/remote/deps.ts';
import type { ConnectedRepository } from '../../toolbox/git/remote/port.ts';
import { pushableBranch } from '../../toolbox/git/remote/push-pack.ts';

/** The answer to a question about a repository. */
export interface RepositoryAnswer {
  readonly answer: Json;
  readonly pack?: Buffer;
}

export interface ReadDeps {
  readonly repository: ConnectedRepository;
  readonly remote: GitRemote;
  /** Of the call, for a question about it. */
  readonly branch: string;
  readonly limits: PackLimits;
  /** Packs whose objects are in memory at the same time wait for each other. */
  readonly inTurn: <T>(work: () => Promise<T>) => Promise<T>;
}

/** Answers with what the server has. Throws TEMPER_TOOL_OUTPUT_INVALID for an answer with the credential, also within an object. */
export async function answerOf(
  question: RepositoryQuestion,
  deps: ReadDeps,
  op: CallOptions,
): Promise<RepositoryAnswer> {
  const { repository, remote, branch } = deps;
  switch (question.kind) {
    case 'Name': {
      const found = await remote.resolve(question.name, op);
      return { answer: found === undefined ? null : { ...found } };
    }
    case 'Branch': {
      const { before, heads } = await pushableBranch({ repository, remote }, branch, op);
      const state = before === undefined ? {} : { before };
      return { answer: { ...state, heads: heads.slice(0, MAX_HEADS) } };
    }
    case 'Commit':
      return withoutCredential(await remote.packOf(question.commit, question.depth, op), deps);
    case 'Since':
      return withoutCredential(await remote.packSince(question.commit, question, op), deps);
  }
}

/** A pod asks its Git about no more of them. */
const MAX_HEADS = 500;

/** Contents are compressed in a pack, so what it contains is seen only by reading it. */
async function withoutCredential(
  { pack, shallow }: SentPack,
  { repository, limits, inTurn }: ReadDeps,
): Promise<RepositoryAnswer> {
  await inTurn(async () => {
    const objects = await readPack(pack, limits, EVERYTHING);
    assertNoCredential(
      repository,
      Array.from(objects.values(), ({ content }) => content),
    );
  });
  return { answer: { shallow: [...shallow] }, pack };
}
