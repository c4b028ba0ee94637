import type { AgentSpec } from '../api/v1alpha1/agent.ts';
import type { TrustPolicySpec } from '../api/v1alpha1/trustpolicy.ts';
import type { AgentProvider } from '../agent/provider/port.ts';
import type { Children } from '../agent/tools/children/port.ts';
import type { OwnSchedules, ScheduleCaller } from '../agent/tools/schedules/port.ts';
import type { EventCaller, Events } from '../agent/tools/events/port.ts';
import type { Memory, SessionStore } from '../agent/ports.ts';
import type { Audit } from '../audit/port.ts';
import type { MessageSender, TaskSender } from '../bus/port.ts';
import type { RankByMeaning } from '../agent/disclosure/tool-search.ts';
import type { DiscoveryEntry } from '../discovery/entry.ts';
import type { UsedTogether } from '../discovery/graph/used-together.ts';
import type { Discovery } from '../discovery/port.ts';
import type { EmbedTexts } from '../discovery/vector/embed-texts.ts';
import type { HybridSearch } from '../discovery/vector/hybrid-search.ts';
import type { Ledger } from '../ledger/port.ts';
import type { CallOptions } from '../lib/call-options.ts';
import type { Digest } from '../lib/canonical.ts';
import type { Clock } from '../lib/clock.ts';
import type { IdGenerator } from '../lib/ids.ts';
import type { Model } from '../models/port.ts';
import type { SafeFetch } from '../net/fetch.ts';
import type { CategoryLevels, Decision, PolicyRequest } from '../policy/types.ts';
import type { Sandbox } from '../sandbox/port.ts';
import type { SessionSandbox } from '../sandbox/session-port.ts';
import type { Skills } from '../skills/port.ts';
import type { RemoteLifecyclePorts, LocalLifecyclePorts } from '../tempering/lifecycle/ports.ts';
import type { RegisteredTool } from '../tempering/types.ts';
import type { CloneLocation } from '../toolbox/git/clone/clone-location.ts';
import type { GatewayRepositories, Repositories } from '../toolbox/git/remote/port.ts';
import type { Terminal } from '../toolbox/terminal/port.ts';
import type { Approvals } from '../tools/approvals.ts';
import type { Web } from '../toolbox/web/deps.ts';
import type { CallerContext, Tool } from '../tools/contract.ts';
import type { RemoteWorkspace } from '../tools/host/remote-workspace.ts';
import type { SchemaCompiler } from '../tools/json-schema/compiler.ts';
import type { SessionScope } from '../tools/session-path.ts';

/** The models of the runtime environment, by the names used in manifests. */
export interface EngineModels {
  /** Each call is charged to the agent, in this process or at the gateway. */
  model: Model;
  /** `model` for the agent's own turns: when the requested model fails, these `provider/model` answer in its place. */
  withFallbacks: (fallbacks: readonly string[]) => Model;
  /** The real `provider/model` behind a name such as `default/judge`. */
  resolve: (name: string) => string;
  contextTokens: (name: string) => number;
}

/** The forged tools of one agent. */
export interface SessionToolSource {
  /** Active tools visible to the agent in a session, in lookup order; names are unique. */
  resolve(agent: string, namespace: string, session: string): RegisteredTool[];
  /** Calls the listener after each change; returns the function that unsubscribes it. */
  onChange(listener: () => void): () => void;
  /** Removes one tool that this session of this agent forged. Idempotent. */
  drop(digest: Digest, scope: SessionScope, op: CallOptions): Promise<void>;
  /** Removes the session tools of this session of this agent only. Idempotent. */
  closeSession(session: SessionScope): Promise<void>;
}

/** What tools that run outside of this process get from the engine. */
export interface ExternalToolDeps {
  /** The decision of the policy for a caller. */
  decide: (caller: CallerContext, request: PolicyRequest) => Decision;
  schemas: Pick<SchemaCompiler, 'check'>;
}

/** Dependencies of the engine on its runtime environment. */
export interface EnginePorts {
  clock: Clock;
  ids: IdGenerator;
  models: EngineModels;
  sandbox: Sandbox & SessionSandbox;
  ledger: Ledger;
  sessions: SessionStore;
  memory: Memory;
  audit: Audit;
  approvals: Approvals;
  tools: SessionToolSource;
  tempering: LocalLifecyclePorts | RemoteLifecyclePorts;
  /** Sends messages of a session to other agents; absent for an agent that is alone. */
  bus?: (session: string) => MessageSender;
  /** Starts and ends child agents; absent for an agent that is alone. */
  children?: (session: string) => Children;
  /** Schedules that the agent makes; absent where nothing starts their runs. */
  schedules?: (caller: ScheduleCaller) => OwnSchedules;
  /** Publishes events and subscribes to them; absent for an agent that is alone. */
  events?: (caller: EventCaller) => Events;
  /** Asks other agents for a session and gets their answers; absent for an agent that is alone. */
  tasks?: (session: string) => TaskSender;
  /** Capability search; when absent, the agent finds only its own tools. */
  discovery?: Discovery;
  /** Further capabilities that the agent finds, when it finds only its own tools. A change makes another list. */
  catalog?: () => readonly DiscoveryEntry[];
  /** Whether there is a connection that these capabilities may require; absent: there is none. */
  hasConnection?: (name: string) => boolean;
  /** Forged tools that the agent uses together, which finds one with the other. */
  usedTogether?: () => readonly UsedTogether[];
  /** The skills that the agent can load; absent where there are none. */
  skills?: Skills;
  /** Ranks the tools that fit a message, where another process has the embedder; absent: `hybridSearch` does, or words alone count. */
  rankByMeaning?: RankByMeaning;
  /** Finds the agent's own tools by meaning too; absent: by words alone. */
  hybridSearch?: { search: HybridSearch; embed: EmbedTexts };
  /** What works on the messages of an agent with `spec.model.agent`, with this model. Absent where no agent program can run. */
  createProvider?: (model: Model) => AgentProvider;
  /** Tools that run outside of this process, such as those of MCP servers. Their names are not those of built-in tools. */
  externalTools?: (deps: ExternalToolDeps) => readonly Tool[];
  /** Of forged tools. */
  fetch: SafeFetch;
  /** Of the built-in tools for the web; without it they have no way to the internet. */
  web?: Web;
  /** Where clones are checked and written for another container; absent where the workspace is here, and where there is none. */
  cloneLocation?: CloneLocation | undefined;
  /** Repositories elsewhere for which a user gave credentials; absent where there are none. */
  repositories?: Repositories | undefined;
  /** The same, whose credentials the gateway has. */
  gatewayRepositories?: GatewayRepositories | undefined;
  /** Absolute path of the folder with the agent's files. */
  workspace: string;
  /** Absolute paths that no tool may open, even inside the workspace: the engine's own state. */
  protectedPaths: readonly string[];
  /** Where programs of the agent run; absent where none can. */
  terminal?: Terminal | undefined;
  /** The workspace, when another container serves it. */
  remoteWorkspace?: RemoteWorkspace;
}

/** The one agent an engine runs. */
export interface EngineAgent {
  name: string;
  namespace: string;
  spec: AgentSpec;
  policy: { name: string; spec: TrustPolicySpec };
  /** The current trust level. */
  level: string;
  /** The levels of tool categories that have their own. */
  categoryLevels?: CategoryLevels;
  /** 0 for an agent without a parent, 1 for its children. */
  generation?: number;
}
