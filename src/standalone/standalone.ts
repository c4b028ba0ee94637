import type { PeerAccount, PeerPath } from '../a2a/callers.ts';
import type { PeerCalls } from '../a2a/peer-calls.ts';
import type { HandledMessage } from '../agent/loop/loop.ts';
import type { PeerTask } from '../bus/peer-task.ts';
import type { WebhookPath, WebhookRequest } from '../events/webhook/request.ts';
import type { CallOptions } from '../lib/call-options.ts';
import type { JudgeSettings, NamedModelSet } from '../models/named-models.ts';
import type { RecordStore } from '../lib/record-store.ts';
import { expireAbandonedRequests } from './approvals.ts';
import { DecisionWatcher } from './decision-watcher.ts';
import type { PeerServer } from './peers/local-peer-calls.ts';
import type { AgentScope } from './team/member.ts';
import type { OpenedAgent } from './team/opened-agent.ts';
import type { UserMessage, WaitingMessage } from './team/post.ts';
import { type LocalPrograms, localTerminal } from './team/local-terminal.ts';
import { openSharedState } from './team/shared-state.ts';
import { Team, type TeamOptions } from './team/team.ts';
import type { StateKeys } from './trust/state-key.ts';
import type { WebhookReceipt } from './webhooks/receive-webhook.ts';

export interface StandaloneOptions extends Omit<TeamOptions, 'terminal'> {
  /** What programs of agents run with; absent: no program runs. */
  programs?: LocalPrograms | undefined;
  /** Absolute path of the state folder. */
  state: string;
  /** The key that signs the state folders of this user. */
  keys: StateKeys;
  models: NamedModelSet;
  /** How judges and reviewers are supervised; absent: no canaries. */
  judges?: JudgeSettings | undefined;
}

/** The agents that run in this process, with their state in plain files. One agent is a team of one. */
export interface Standalone extends AsyncDisposable {
  readonly records: RecordStore;
  /** Opens the agent when it has not worked in this process. Throws TEMPER_NOT_FOUND, or TEMPER_POLICY_DENIED for a model that its policy does not allow. */
  open(scope: AgentScope): Promise<OpenedAgent>;
  /**
   * Sends a message of the user to an agent and resolves with its end. It is stored first: after a crash, `unended` finds it. An aborted
   * signal cancels it with all messages of its chain. Throws the errors of the agent loop.
   */
  handle(scope: AgentScope, message: UserMessage, op: CallOptions): Promise<HandledMessage>;
  /** The message of the user in a session that has not ended: its process crashed, or it waits for an approval. Handle it again, with its id. */
  unended(scope: AgentScope, session: string): Promise<UserMessage | undefined>;
  /** Starts the runs of schedules until the signal aborts. Throws what ended the work on messages. */
  serve(signal: AbortSignal): Promise<void>;
  /**
   * Gives an agent the message of a signed request from outside, if one of the keys signed it, once for each id. Throws TEMPER_NOT_FOUND for
   * a request that no webhook accepts, TEMPER_REQUEST_INVALID or TEMPER_BUS_FULL.
   */
  receiveWebhook(path: WebhookPath, request: WebhookRequest, keys: readonly Uint8Array[]): Promise<WebhookReceipt>;
  /** What a caller over A2A can do with an agent that lists it. Throws TEMPER_NOT_FOUND. */
  peerCalls(path: PeerPath, account: PeerAccount, server: PeerServer): PeerCalls<PeerTask>;
  /** The messages between agents that wait for decisions. */
  waiting(): WaitingMessage[];
  /** Whether a message is in work or will be without a decision, such as one that an earlier process left. */
  isBusy(): boolean;
  /** Resolves when no message is in work and none will be without a decision, or when the signal aborts. Throws what ended the work on messages. */
  idle(signal: AbortSignal): Promise<void>;
  /** Waits for running promotions and runs of tests of all agents, but not for approvals. */
  settled(): Promise<void>;
}

/** Throws TEMPER_STATE_LOCKED, TEMPER_STATE_UNUSABLE, TEMPER_STATE_UNTRUSTED, TEMPER_STATE_KEY_UNUSABLE, TEMPER_STATE_CORRUPT, TEMPER_AUDIT_CHAIN_INVALID or TEMPER_SANDBOX_UNAVAILABLE, after it has stopped all started components. */
export async function openStandalone(options: StandaloneOptions): Promise<Standalone> {
  await using opening = new AsyncDisposableStack();
  const { state, keys } = options;
  const protectedPaths = [state, keys.folder, ...options.protectedPaths];
  let team: Team | undefined;
  const shared = await openSharedState(
    { ...options, isWithheld: ({ agent: name, namespace }) => team?.withholds({ name, namespace }) === true },
    opening,
  );
  const terminal =
    options.programs && localTerminal(options.programs, { ...options, protectedPaths, clock: shared.clock });
  team = new Team(shared, { ...options, protectedPaths, ...(terminal === undefined ? {} : { terminal }) });
  const opened = opening.use(team);
  await opened.restore();
  await expireAbandonedRequests(
    shared.records,
    opened.members().map(({ parked }) => parked),
  );
  await opened.storeManifests();
  const watcher = new DecisionWatcher({ state, registry: shared.registry, team: opened, events: options.events });
  opening.defer(() => watcher.stop());
  await watcher.start();
  await opened.start();
  const all = opening.move();
  return {
    records: shared.records,
    open: (scope) => opened.open(scope),
    handle: (scope, message, op) => opened.handle(scope, message, op),
    unended: (scope, session) => opened.unended(scope, session),
    serve: (signal) => opened.serve(signal),
    receiveWebhook: (path, request, keys) => opened.receiveWebhook(path, request, keys),
    peerCalls: (path, account, server) => opened.peerCalls(path, account, server),
    waiting: () => opened.waiting(),
    isBusy: () => opened.isBusy(),
    idle: (signal) => opened.idle(signal),
    settled: () => opened.settled(),
    [Symbol.asyncDispose]: () => all.disposeAsync(),
  };
}
