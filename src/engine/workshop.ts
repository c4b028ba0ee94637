import { generateTextTool } from '../agent/generate-text.ts';
import { sendTool } from '../agent/send-tool.ts';
import { createMemoryTools } from '../agent/memory-tools.ts';
import type { ToolArtifact } from '../api/v1alpha1/emergenttool.ts';
import { discoverTool } from '../discovery/discover-tool.ts';
import { ownTools } from '../discovery/own-tools.ts';
import { createForge } from '../forge/forge.ts';
import { createForgeTool } from '../forge/forge-tool.ts';
import { createForgeReview } from '../forge/review.ts';
import type { ForgedToolDeps } from '../forge/forged-tool.ts';
import type { ForgeResult, ForgeReview, SessionTools } from '../forge/types.ts';
import type { JsonObject } from '../lib/json.ts';
import type { Op } from '../lib/operation.ts';
import type { Model } from '../models/port.ts';
import type { Decider, PolicyRequest } from '../policy/types.ts';
import type { HostCalls } from '../sandbox/port.ts';
import { createJudge } from '../tempering/judge.ts';
import { createToolbox } from '../toolbox/toolbox.ts';
import type { CallerContext, NestedCall, Tool, ToolView } from '../tools/contract.ts';
import type { EventSink } from '../tools/events.ts';
import { createHostCalls } from '../tools/host-calls.ts';
import type { SchemaCompiler } from '../tools/schemas.ts';
import type { AgentModel } from './agent-model.ts';
import type { EngineAgent, EnginePorts, TemperingHere } from './ports.ts';

/** The author of what came in a package is not known; no model of this house is. */
const IMPORTED = 'package';

const DEFAULT_OUTPUT_TOKENS = 4_096;

type Session = Pick<CallerContext, 'agent' | 'namespace' | 'session'>;

/** What the parts of one engine share. */
export interface Workshop {
  ports: EnginePorts;
  agent: EngineAgent;
  agentModel: AgentModel;
  /** What judges and reviewers speak through; charged to the agent. */
  examiner: Model;
  events: EventSink;
  schemas: SchemaCompiler;
  decider: (caller: Session) => Decider;
  view: (caller: Session) => ToolView;
}

/** The tools that are not made by agents. Which of them the agent sees is its policy's decision. */
export function builtInTools({ ports, agent, agentModel, decider, view }: Workshop): Tool[] {
  const { workspace, closed, clock, memory, ids, ledger, models, bus, remoteWorkspace: remote } = ports;
  const decide = (caller: CallerContext, request: PolicyRequest) => decider(caller).decide(request);
  const { model } = agentModel;
  const { primary: modelName, maxOutputTokens = DEFAULT_OUTPUT_TOKENS } = agent.spec.model;
  const generateText = generateTextTool({
    model,
    modelName,
    maxOutputTokens,
    ledger,
    costOf: models.costOf,
    clock,
    ids,
  });
  return [
    ...createToolbox({ workspace, closed, decide, clock, ...(remote === undefined ? {} : { remote }) }),
    ...createMemoryTools({ memory, decide }),
    generateText,
    sendTool({ decide, ...(bus === undefined ? {} : { bus }) }),
    discoverTool(ports.discovery ?? ownTools({ view, decider })),
  ];
}

/** Host functions of one forged tool, permitted anew at each call. A tool runs with its caller's rights and within its own declarations. */
function hostCallsOf({ ports, decider }: Workshop, artifact: ToolArtifact, caller: Session): HostCalls {
  const { fetch, workspace, closed, remoteWorkspace } = ports;
  return createHostCalls({
    ...(remoteWorkspace === undefined ? {} : { readFile: remoteWorkspace.readFile }),
    requires: artifact.requires,
    decide: (request) => decider(caller).decide(request),
    fetch,
    workspace,
    closed,
  });
}

/** What makes and runs forged tools. */
export interface Forging {
  tool: Tool;
  forgedDeps: Omit<ForgedToolDeps, 'describe'>;
  /** The whole forge of a request that comes from a package: every gate, the judge's and the policy's too. */
  admit(request: JsonObject, caller: Session, invoke: NestedCall, op: Op): Promise<ForgeResult>;
}

export function forging(workshop: Workshop): Forging {
  const { ports, agentModel, schemas } = workshop;
  const { sandbox, clock, tempering } = ports;
  const forge = createForge({ sandbox, clock, schemas });
  const world = worldOf(workshop);
  const { review, keepRejected } = 'registry' in tempering ? reviewHere(workshop, tempering) : tempering;
  const hostCalls = (artifact: ToolArtifact, caller: Session) => hostCallsOf(workshop, artifact, caller);
  const forgeWorld = (caller: Session) => ({
    ...world(caller),
    authorModel: agentModel.author,
    hostCalls: (artifact: ToolArtifact) => hostCalls(artifact, caller),
  });
  return {
    tool: createForgeTool({ forge, review, sessionTools: { keepRejected }, world: forgeWorld }),
    forgedDeps: { sandbox, clock, schemas, hostCalls },
    async admit(request, { agent, namespace, session }, invoke, op) {
      const forgeCaller = { agent, namespace, session, rootMessage: op.key, authorModel: IMPORTED };
      const prepared = await forge.check({ request }, { ...forgeWorld(forgeCaller), invoke, op });
      if (!('accepted' in prepared)) return review.submit(prepared, forgeCaller, op);
      await keepRejected(prepared, forgeCaller);
      return prepared;
    },
  };
}

/** What the deterministic gates judge by, on either side. */
function worldOf({ decider, view, events }: Workshop) {
  return (caller: Session) => ({ decider: decider(caller), view: view(caller), events });
}

/** The review with this house's judge, and its registry with the limits this agent's policy sets. */
function reviewHere(
  workshop: Workshop,
  { registry }: TemperingHere,
): { review: ForgeReview; keepRejected: SessionTools['keepRejected'] } {
  const { ports, agentModel, decider } = workshop;
  const { clock, ids } = ports;
  const nonce = (): string => ids.next('nonce');
  const judge = createJudge({ model: workshop.examiner, judgeModel: agentModel.judge, clock, nonce });
  const keepRejected: SessionTools['keepRejected'] = (refused, caller) => registry.keepRejected(refused, caller);
  const register: SessionTools['register'] = (accepted, caller) =>
    registry.register(accepted, caller, decider(caller).ceilings);
  const review = createForgeReview({ judge, sessionTools: { register, keepRejected }, world: worldOf(workshop) });
  return { review, keepRejected };
}
