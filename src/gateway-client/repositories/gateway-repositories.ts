import type { BrokeredCallRequest } from '../../gateway-api/brokered/brokered-api.ts';
import { malformedResponse } from '../../gateway-api/response-parsing.ts';
import { POD_API_PATHS } from '../../gateway-api/pod-api.ts';
import type {
  AgentRepository,
  RepositoryQuestion,
  RepositoryReadRequest,
} from '../../gateway-api/repositories/repository-api.ts';
import { isObjectId } from '../../git/objects/object-id.ts';
import { EVERYTHING, readPack } from '../../git/pack/pack-reader.ts';
import type { Clone, ResolvedName } from '../../git/remote.ts';
import type { Clock } from '../../lib/clock.ts';
import { TemperError } from '../../lib/errors.ts';
import { isJsonObject, type Json, member } from '../../lib/json.ts';
import { gatewayDefinition } from '../../toolbox/git/remote/gateway-definition.ts';
import {
  type BranchState,
  type GatewayCall,
  type GatewayRepositories,
  type GatewayRepository,
  repositoryAddress,
  type RepositoryReader,
} from '../../toolbox/git/remote/port.ts';
import { outputIn, timeOf } from '../brokered/brokered-tools.ts';
import type { GatewayClient } from '../gateway-client.ts';

export interface GatewayRepositoriesOptions {
  client: Pick<GatewayClient, 'call' | 'parts'>;
  clock: Clock;
  deliveryToken: () => string;
  /** Receives the signatures of the answers. */
  onAnswerSignature?: (signature: string) => void;
}

/** The repositories of the connections of the namespace. The gateway has their credentials, and decides about each call itself. */
export function gatewayRepositories(
  repositories: readonly AgentRepository[],
  options: GatewayRepositoriesOptions,
): GatewayRepositories {
  const known = new Map(
    repositories.map((one) => [repositoryAddress(one.url), gatewayRepository(one.private === true, options)]),
  );
  return { find: (url) => known.get(repositoryAddress(url)) };
}

function gatewayRepository(isPrivate: boolean, options: GatewayRepositoriesOptions): GatewayRepository {
  return {
    isPrivate,
    reader: (call) => reader(call, options),
    branch: async (_branch, call) => branchIn((await ask(call, { kind: 'Branch' }, options)).answer),
    async call(call, attachment) {
      const { client, onAnswerSignature } = options;
      const path = attachment === undefined ? POD_API_PATHS.brokeredCalls : POD_API_PATHS.attachedCalls;
      const body = bodyOf(call, options);
      const { timeoutMs } = body;
      const sent = {
        ...(attachment === undefined ? {} : { attachment }),
        ...(onAnswerSignature === undefined ? {} : { onAnswerSignature }),
      };
      return outputIn(await client.call({ method: 'POST', path, body, op: call.op, timeoutMs, ...sent }));
    },
  };
}

/** The pod reads each pack itself: what it writes, it has checked. */
function reader(call: GatewayCall, options: GatewayRepositoriesOptions): RepositoryReader {
  return {
    resolve: async (name) => resolvedIn((await ask(call, { kind: 'Name', name }, options)).answer),
    async clone(commit, { depth, limits }) {
      const { answer, pack } = await ask(call, { kind: 'Commit', commit, depth }, options);
      return cloneIn(commit, answer, pack, limits);
    },
    async since(commit, { haves, shallow }, limits) {
      const question: RepositoryQuestion = { kind: 'Since', commit, haves: [...haves], shallow: [...shallow] };
      const { answer, pack } = await ask(call, question, options);
      return cloneIn(commit, answer, pack, limits);
    },
  };
}

async function ask(
  call: GatewayCall,
  question: RepositoryQuestion,
  options: GatewayRepositoriesOptions,
): Promise<{ answer: Json; pack: Buffer }> {
  const body: RepositoryReadRequest = { ...bodyOf(call, options), question };
  const { timeoutMs } = body;
  const path = POD_API_PATHS.repositoryReads;
  const { json, bytes } = await options.client.parts({ method: 'POST', path, body, op: call.op, timeoutMs });
  return { answer: outputIn(json), pack: bytes };
}

function bodyOf({ tool, input, op }: GatewayCall, options: GatewayRepositoriesOptions): BrokeredCallRequest {
  if (!isJsonObject(input)) throw new TemperError('TEMPER_TOOL_INPUT_INVALID', `"${tool.name}" takes an object`);
  return {
    deliveryToken: options.deliveryToken(),
    tool: tool.name,
    definition: gatewayDefinition(tool),
    input,
    timeoutMs: timeOf(op, options.clock),
  };
}

function resolvedIn(answer: Json): ResolvedName | undefined {
  if (answer === null) return undefined;
  const [commit, branch] = [member(answer, 'commit'), member(answer, 'branch')];
  if (typeof commit !== 'string' || !isObjectId(commit)) throw malformedResponse('result.output.commit');
  return { commit, ...(typeof branch === 'string' ? { branch } : {}) };
}

function branchIn(answer: Json): BranchState {
  const before = member(answer, 'before');
  const heads = idsIn(answer, 'heads');
  if (before === undefined) return { heads };
  if (typeof before !== 'string' || !isObjectId(before)) throw malformedResponse('result.output.before');
  return { before, heads };
}

async function cloneIn(
  commit: string,
  answer: Json,
  pack: Buffer,
  limits: Parameters<typeof readPack>[1],
): Promise<Clone> {
  const shallow = idsIn(answer, 'shallow');
  return { commit, pack, shallow, objects: await readPack(pack, limits, EVERYTHING) };
}

function idsIn(answer: Json, name: string): string[] {
  const value = member(answer, name);
  if (!Array.isArray(value)) throw malformedResponse(`result.output.${name}`);
  return value.filter((id): id is string => typeof id === 'string' && isObjectId(id));
}
