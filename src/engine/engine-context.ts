import type { TaintTracker } from '../agent/loop/taint-tracker.ts';
import { generateTextTool } from '../agent/tools/generate-text.ts';
import { childTools } from '../agent/tools/children/child-tools.ts';
import { specialistTool } from '../agent/tools/children/specialist-tool.ts';
import { scheduleTools } from '../agent/tools/schedules/schedule-tools.ts';
import { eventTools } from '../agent/tools/events/event-tools.ts';
import { askTools } from '../agent/tools/ask-tool.ts';
import { sendTool } from '../agent/tools/send-tool.ts';
import { createMemoryTools } from '../agent/tools/memory-tools.ts';
import { DEFAULT_OUTPUT_TOKENS } from '../api/limits/output-tokens.ts';
import type { ToolArtifact } from '../api/v1alpha1/emergenttool.ts';
import { discoverTool } from '../discovery/discover-tool.ts';
import { sessionDiscovery } from '../discovery/session-discovery.ts';
import { createForge } from '../forge/forge.ts';
import { createForgeTool } from '../forge/forge-tool.ts';
import { createForgeReview, type ReviewContext } from '../forge/review.ts';
import type { ForgedToolDeps } from '../forge/forged-tool.ts';
import type { ForgeResult, ForgeReview, SessionToolRegistry } from '../forge/types.ts';
import type { JsonObject } from '../lib/json.ts';
import type { CallOptions } from '../lib/call-options.ts';
import type { Model } from '../models/port.ts';
import type { Decider, PolicyRequest } from '../policy/types.ts';
import { isPrivateContent } from '../policy/private-data/sources.ts';
import { isUntrustedSource } from '../policy/untrusted-source.ts';
import { NO_CANARIES } from '../tempering/canary/canaries.ts';
import { createJudge } from '../tempering/judge/judge.ts';
import type { LocalLifecyclePorts } from '../tempering/lifecycle/ports.ts';
import { IMPORTS_SESSION } from '../tempering/registry/visibility.ts';
import { codeRunTool } from '../toolbox/code-run.ts';
import { gitTools } from '../toolbox/git/git-tools.ts';
import { remoteGitTools } from '../toolbox/git/remote/remote-tools.ts';
import { shellExecTool } from '../toolbox/terminal/shell-exec.ts';
import { createToolbox } from '../toolbox/toolbox.ts';
import type { CallerContext, NestedCall, Tool, ToolView } from '../tools/contract.ts';
import { type EventSink, inSession } from '../tools/events.ts';
import { createHostCalls } from '../tools/host/host-calls.ts';
import { type SessionScope, sessionPath } from '../tools/session-path.ts';
import type { SchemaCompiler } from '../tools/json-schema/compiler.ts';
import type { AgentModel } from './agent-model.ts';
import { builtInNames } from './built-in.ts';
import type { EngineAgent, EnginePorts } from './ports.ts';

/** Author recorded for imported tools: unknown, and never the name of a configured model. */
const IMPORT_AUTHOR = 'package';

/** Shared dependencies of the components of one engine. */
export interface EngineContext {
  ports: EnginePorts;
  agent: EngineAgent;
  agentModel: AgentModel;
  /** The model port for the agent's own calls, with its fallbacks; its costs are charged to the agent. */
  model: Model;
  /** The model port for judges and reviewers; its costs are charged to the agent. */
  reviewModel: Model;
  events: EventSink;
  schemas: SchemaCompiler;
  /** For calls of a run, the part of the policy that is the run's. */
  decider: (caller: SessionScope & Pick<CallerContext, 'run' | 'approved'>) => Decider;
  taint: Pick<TaintTracker, 'mark' | 'markPrivate' | 'has' | 'read' | 'hasPrivate'>;
}

/** The tools of a session, for components that only read descriptors. */
export type DescribedTools = (caller: SessionScope) => ToolView;

/** Creates the built-in tools. The policy decides which of them the agent sees. */
export function builtInTools(
  { ports, agent, model, decider, taint }: EngineContext,
  described: DescribedTools,
): Tool[] {
  const { hybridSearch: hybrid, catalog, hasConnection, usedTogether } = ports;
  const { workspace, protectedPaths, clock, memory, bus, tasks, web, remoteWorkspace: remote } = ports;
  const decide = (caller: CallerContext, request: PolicyRequest) => decider(caller).decide(request);
  const { primary: modelName, maxOutputTokens = DEFAULT_OUTPUT_TOKENS } = agent.spec.model;
  const hasChildren = ports.children !== undefined;
  const isTainted = ({ session }: CallerContext): boolean => taint.has(session);
  const onAnswer = ({ session }: CallerContext, tainted: boolean): void => {
    if (isPrivateContent({ source: 'Reply', tainted }, agent.policy.spec)) taint.markPrivate(session);
    if (tainted || isUntrustedSource('Reply', agent.policy.spec)) taint.mark(session, 'Reply');
  };
  const onUntrusted = ({ session }: CallerContext): void => {
    if (isPrivateContent({ source: 'Memory', tainted: true }, agent.policy.spec)) taint.markPrivate(session);
    taint.mark(session, 'Memory');
  };
  return [
    ...createToolbox({
      workspace,
      protectedFolders: protectedPaths,
      decide,
      clock,
      ...(remote === undefined ? {} : { remote }),
      ...(web === undefined ? {} : { web }),
    }),
    codeRunTool({ sandbox: ports.sandbox, limits: (caller) => decider(caller).forgeLimits }),
    ...gitTools(ports.terminal),
    ...remoteGitTools({ ...ports, decide, protectedFolders: protectedPaths, remote }),
    shellExecTool({
      terminal: ports.terminal,
      programs: (caller) => decider(caller).programs,
      environment: ({ run }) => (run?.spec ?? agent.spec).grants?.environment ?? [],
    }),
    ...createMemoryTools({ memory, decide, isTainted, onUntrusted }),
    generateTextTool({ model, modelName, maxOutputTokens, clock }),
    sendTool({ decide, isTainted, hasChildren, ...(bus === undefined ? {} : { bus }) }),
    ...childTools({ decide, ...(ports.children === undefined ? {} : { children: ports.children }) }),
    specialistTool({
      clock,
      decide,
      onAnswer,
      isTainted,
      ...(ports.children === undefined ? {} : { children: ports.children }),
      ...(tasks === undefined ? {} : { tasks }),
    }),
    ...scheduleTools({
      isTainted,
      decide,
      clock,
      ...(ports.schedules === undefined ? {} : { schedules: ports.schedules }),
    }),
    ...eventTools({ isTainted, decide, ...(ports.events === undefined ? {} : { events: ports.events }) }),
    ...askTools({ decide, isTainted, onAnswer, clock, hasChildren, ...(tasks === undefined ? {} : { tasks }) }),
    discoverTool(
      ports.discovery ?? sessionDiscovery({ view: described, decider, hybrid, catalog, hasConnection, usedTogether }),
    ),
  ];
}

/** The tools that run outside of this process. They keep their names whatever the agent forges. */
export function externalTools({ ports, decider, schemas }: EngineContext): readonly Tool[] {
  const decide = (caller: CallerContext, request: PolicyRequest) => decider(caller).decide(request);
  return ports.externalTools?.({ decide, schemas }) ?? [];
}

/** What forged tools run with. Their host functions are authorized at each call: a tool has the permissions of its caller, limited to its own declarations. */
export function forgedToolDeps({
  ports,
  agent,
  schemas,
  decider,
  taint,
}: EngineContext): Omit<ForgedToolDeps, 'describe'> {
  const { sandbox, clock, fetch, workspace, protectedPaths, remoteWorkspace } = ports;
  const readsUntrustedFiles = isUntrustedSource('File', agent.policy.spec);
  return {
    sandbox,
    clock,
    schemas,
    hostCalls: (artifact, caller) =>
      createHostCalls({
        ...(remoteWorkspace === undefined ? {} : { readFile: remoteWorkspace.readFile }),
        requires: artifact.requires,
        decide: (request) => decider(caller).decide(request),
        onCall: ({ api }) => {
          if (api !== 'fs.readFile') return;
          if (readsUntrustedFiles) taint.mark(caller.session, 'File');
          taint.read(caller.session, 'File');
        },
        fetch,
        workspace,
        protectedFolders: protectedPaths,
      }),
  };
}

/** The forge of an agent. */
export interface Forging {
  tool: Tool;
  /** Runs the complete forge for a request from a package: all gates, including judge and policy. */
  submitImport(request: JsonObject, caller: CallerContext, invoke: NestedCall, op: CallOptions): Promise<ForgeResult>;
}

export function createForging(
  context: EngineContext,
  described: DescribedTools,
  { hostCalls, taken }: Pick<ForgedToolDeps, 'hostCalls'> & { taken: readonly Tool[] },
): Forging {
  const { ports, agentModel, schemas } = context;
  const { sandbox, clock, tempering } = ports;
  const forge = createForge({ sandbox, clock, schemas });
  const gateContext = gateContextOf(context, described);
  const { review, keepRejected } = 'registry' in tempering ? localReview(context, gateContext, tempering) : tempering;
  const forgeContext = (caller: CallerContext) => ({
    ...gateContext(caller),
    authorModel: agentModel.author,
    hostCalls: (artifact: ToolArtifact) => hostCalls(artifact, caller),
    replacesSessionTools: true,
    // Also those that this agent does not see, such as the tools of code mode.
    reservedNames: new Set([...builtInNames(), ...taken.map(({ descriptor }) => descriptor.name)]),
    owner: sessionPath(caller),
  });
  return {
    tool: createForgeTool({ forge, review, sessionTools: { recordRejected: keepRejected }, context: forgeContext }),
    async submitImport(request, caller, invoke, op) {
      const { agent, namespace } = caller;
      // The user imported it for the agent, not for the session that happens to be the next one.
      const owner = { agent, namespace, session: IMPORTS_SESSION };
      const forgeCaller = { ...owner, rootMessage: op.key, authorModel: IMPORT_AUTHOR };
      const prepared = await forge.check({ request }, { ...forgeContext(caller), isImport: true, invoke, op });
      if (!('accepted' in prepared)) return review.submit(prepared, forgeCaller, op);
      await keepRejected(prepared, forgeCaller);
      return prepared;
    },
  };
}

type GateContext = (caller: SessionScope) => ReviewContext;

/** Context of the deterministic gates, on the author's side and in the review. */
function gateContextOf({ decider, events }: EngineContext, described: DescribedTools): GateContext {
  return (caller) => ({
    decider: decider(caller),
    view: described(caller),
    isImport: caller.session === IMPORTS_SESSION,
    events: inSession(events, caller.session),
  });
}

/** Creates the review with the local judge and registry, within the limits of the agent's policy. */
function localReview(
  context: EngineContext,
  gateContext: GateContext,
  { registry, canaries = NO_CANARIES }: LocalLifecyclePorts,
): { review: ForgeReview; keepRejected: SessionToolRegistry['recordRejected'] } {
  const { ports, agentModel, decider } = context;
  const { clock, ids } = ports;
  const nonce = (): string => ids.next('nonce');
  const { judge: judgeModel, judgeMayBeAuthor } = agentModel;
  const judge = createJudge({
    model: context.reviewModel,
    judgeModel,
    mayBeAuthor: judgeMayBeAuthor,
    clock,
    nonce,
    canaries,
  });
  const keepRejected: SessionToolRegistry['recordRejected'] = (refused, caller) =>
    registry.recordRejected(refused, caller);
  const register: SessionToolRegistry['register'] = (accepted, caller) =>
    registry.register(accepted, caller, decider(caller).forgeLimits);
  const review = createForgeReview({
    judge,
    sessionTools: { register, recordRejected: keepRejected },
    context: gateContext,
  });
  return { review, keepRejected };
}
