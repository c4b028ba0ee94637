import type { CallOptions } from '../../../lib/call-options.ts';
import type { Json } from '../../../lib/json.ts';
import { packCommit } from '../remote/pack-commit.ts';
import { writeFetch } from '../remote/write-fetch.ts';
import { POD_LIMITS } from './clone-location.ts';
import { CLONE_REQUEST, FETCH_REQUEST, parseCloneRequest, parseFetchRequest } from './clone-request.ts';
import { PACK_REQUEST, parsePackRequest } from './pack-request.ts';
import { writeClone, type WriteCloneDeps } from './write-clone.ts';

export type SandboxRequest = (input: Json, op: CallOptions) => Promise<Json>;

/** What the sandbox container of a pod does with Git for its agent container, by the name of the request. */
export function gitRequests(deps: WriteCloneDeps): ReadonlyMap<string, SandboxRequest> {
  return new Map<string, SandboxRequest>([
    [
      CLONE_REQUEST,
      async (input, op) => {
        const { clone, context } = parseCloneRequest(input, op);
        await writeClone(clone, deps, context);
        return null;
      },
    ],
    [
      FETCH_REQUEST,
      async (input, op) => {
        const { fetched, context } = parseFetchRequest(input, op);
        await writeFetch(fetched, deps, context);
        return null;
      },
    ],
    [
      PACK_REQUEST,
      async (input, op) => {
        const { order, context } = parsePackRequest(input, op);
        const pack = await packCommit(order, { ...deps, maxBytes: POD_LIMITS.answerBytes }, context);
        return pack.toString('base64');
      },
    ],
  ]);
}
