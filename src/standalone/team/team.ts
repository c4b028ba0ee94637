import { type PeerAccount, type PeerPath, requireListed } from '../../a2a/callers.ts';
import type { PeerCalls } from '../../a2a/peer-calls.ts';
import type { HandledMessage } from '../../agent/loop/loop.ts';
import { createManifestLoader } from '../../api/manifests.ts';
import type { Agent } from '../../api/v1alpha1/agent.ts';
import type { TrustPolicy } from '../../api/v1alpha1/trustpolicy.ts';
import type { PeerTask } from '../../bus/peer-task.ts';
import type { WebhookPath, WebhookRequest } from '../../events/webhook/request.ts';
import { SerialQueue } from '../../lib/async/serial-queue.ts';
import { SingleFlight } from '../../lib/async/single-flight.ts';
import type { CallOptions } from '../../lib/call-options.ts';
import { TemperError } from '../../lib/errors.ts';
import { PATTERN_RULES } from '../../policy/patterns/pattern-rules.ts';
import { type ChildRecord, storeChild, storedChildren } from '../children/child-records.ts';
import { deleteAgentData } from '../children/end-child.ts';
import { isSpecialistOver } from '../children/ended-specialists.ts';
import type { Family } from '../children/local-children.ts';
import type { OwnSchedule } from '../../schedule/agent-schedule.ts';
import type { UserDecision } from '../decision-files.ts';
import { unknownAgent } from '../messages/local-bus.ts';
import type { PeerServer } from '../peers/local-peer-calls.ts';
import { storeDecision } from '../stored-decision.ts';
import { receiveWebhook, type WebhookReceipt } from '../webhooks/receive-webhook.ts';
import {
  type AgentDefinition,
  type AgentScope,
  createMember,
  type Member,
  memberKey,
  withholdsSources,
} from './member.ts';
import { LocalSchedules } from '../schedules/local-schedules.ts';
import { openAgent, type OpenedAgent, type OpenedAgentOptions } from './opened-agent.ts';
import { Post, type UserMessage, type WaitingMessage } from './post.ts';
import type { SharedState } from './shared-state.ts';
import { storeAgentManifests } from './stored-manifests.ts';
import type { TeamEvents } from './team-events.ts';

export interface TeamOptions
  extends Pick<
    OpenedAgentOptions,
    | 'workspace'
    | 'protectedPaths'
    | 'terminal'
    | 'redact'
    | 'hasApprover'
    | 'mcp'
    | 'services'
    | 'hostTools'
    | 'repositories'
    | 'capabilities'
    | 'connections'
  > {
  /** At least one, all of one namespace. */
  agents: readonly AgentDefinition[];
  events: TeamEvents;
}

const REOPENED_AFTER_MS = 3_600_000;

/** The agents of this process. An agent is opened for its first work, as a pod is started for the first message. */
export class Team implements AsyncDisposable {
  readonly #shared: SharedState;
  readonly #options: TeamOptions;
  readonly #policies: ReadonlyMap<string, TrustPolicy>;
  readonly #members: Map<string, Member>;
  readonly #opened = new Map<string, OpenedAgent>();
  /** Monotonic milliseconds. */
  readonly #openedAt = new Map<string, number>();
  readonly #opening = new SingleFlight<OpenedAgent>();
  readonly #familyChanges = new SerialQueue();
  readonly #manifests = createManifestLoader({ patterns: PATTERN_RULES });
  /** Names of children that were ended. */
  readonly #ended = new Set<string>();
  readonly #removals = new Set<Promise<void>>();
  #post: Post | undefined;
  #schedules: LocalSchedules | undefined;
  #isServing = false;

  constructor(shared: SharedState, options: TeamOptions) {
    this.#shared = shared;
    this.#options = options;
    this.#policies = new Map(options.agents.map(({ policy }) => [policy.metadata.name, policy]));
    const members = options.agents.map((definition) => createMember(definition, shared));
    this.#members = new Map(members.map((member) => [memberKey(member), member]));
  }

  members(): Member[] {
    return [...this.#members.values()];
  }

  withholds(scope: AgentScope): boolean {
    const member = this.#members.get(memberKey(scope));
    return member !== undefined && withholdsSources(member);
  }

  /** Restores the children and the messages that an earlier process left. */
  async restore(): Promise<void> {
    const { records, clock } = this.#shared;
    for (const namespace of new Set(this.members().map((member) => member.namespace)))
      await this.#restoreChildren(await storedChildren(records, namespace, clock.now().getTime()));
    this.#post = await Post.open({
      shared: this.#shared,
      workspace: this.#options.workspace,
      events: this.#options.events,
      member: (scope) => this.#members.get(memberKey(scope)),
      members: () => this.members(),
      open: (member) => this.#openForWork(member),
      isSuspended: (key) => this.#isSuspended(key),
      family: (member) => this.#family(member),
      ended: (member) => this.#endIfOver(member),
      onSchedule: (member, schedule, change) => this.#onSchedule(member, schedule, change),
    });
    this.#schedules = new LocalSchedules({
      inboxes: this.#post.inboxes,
      clock,
      workspace: this.#options.workspace,
      events: this.#options.events,
      members: () => this.members(),
      isSuspended: (key) => this.#isSuspended(key),
    });
  }

  /** Starts the work on the messages of all agents. */
  async start(): Promise<void> {
    for (const member of this.#members.values()) await this.#startedPost().serve(member);
    this.#endSpecialists();
  }

  /** Throws TEMPER_NOT_FOUND, or TEMPER_POLICY_DENIED for a model that the policy of the agent does not allow. */
  open(scope: AgentScope): Promise<OpenedAgent> {
    const key = memberKey(scope);
    const opened = this.#opened.get(key);
    if (opened !== undefined) return Promise.resolve(opened);
    return this.#opening.run(key, () => this.#openNow(key, scope));
  }

  handle(scope: AgentScope, message: UserMessage, op: CallOptions): Promise<HandledMessage> {
    return this.#startedPost().handle(this.#memberOf(scope), message, op);
  }

  /** The message of a user that has not ended; one of a state folder of an earlier release only while it waits for an approval. */
  async unended(scope: AgentScope, session: string): Promise<UserMessage | undefined> {
    const member = this.#memberOf(scope);
    const queued = this.#startedPost().unended(member, session);
    if (queued !== undefined) return queued;
    const parked = await member.parked.find(session);
    return parked === undefined ? undefined : { id: parked.message, session, text: parked.text };
  }

  waiting(): WaitingMessage[] {
    return this.#startedPost().waiting(this.members());
  }

  /** Stores the manifests of all agents, of those without work too. */
  async storeManifests(): Promise<void> {
    for (const member of this.#members.values())
      await storeAgentManifests(this.#shared.records, this.#shared.clock, member);
  }

  /** Records the decision of a user about a request, and resolves the calls and the messages that await it. */
  async decide(decision: UserDecision): Promise<void> {
    await storeDecision(this.#shared.records, decision);
    for (const { approvals } of this.#opened.values()) await approvals.decide(decision);
    await this.#post?.decided(this.members(), decision.target);
  }

  /**
   * Starts the runs of schedules until the signal aborts; messages in work then stay for the next process. Throws what ended the work on
   * messages.
   */
  async serve(signal: AbortSignal): Promise<void> {
    this.#isServing = true;
    const failed = new AbortController();
    const ended = AbortSignal.any([signal, failed.signal]);
    const schedules = this.#schedules?.run(ended, () => this.#endSpecialists());
    try {
      await Promise.race([this.#startedPost().untilFailed(ended), schedules]);
    } finally {
      failed.abort();
      await schedules?.catch(() => undefined);
    }
  }

  /** As `receiveWebhook`. */
  receiveWebhook(path: WebhookPath, request: WebhookRequest, keys: readonly Uint8Array[]): Promise<WebhookReceipt> {
    const deps = {
      find: (key: string) => this.#members.get(key),
      post: this.#startedPost(),
      clock: this.#shared.clock,
    };
    return receiveWebhook(path, request, keys, deps);
  }

  /** As `peerCalls` of Standalone. */
  peerCalls(path: PeerPath, account: PeerAccount, server: PeerServer): PeerCalls<PeerTask> {
    const member = this.#members.get(memberKey({ name: path.agent, namespace: path.namespace }));
    const listed = member && { spec: member.agent.spec, isChild: member.parent !== undefined };
    const caller = requireListed(path, listed, account);
    if (member === undefined) throw unknownAgent(path.agent);
    return this.#startedPost().peerCalls(member, caller, server);
  }

  isBusy(): boolean {
    return this.#startedPost().isBusy();
  }

  idle(signal: AbortSignal): Promise<void> {
    return this.#startedPost().idle(signal);
  }

  async settled(): Promise<void> {
    for (const { engine } of this.#opened.values()) await engine.settled();
    await Promise.all(this.#removals);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#post?.stop();
    await Promise.allSettled(this.#removals);
    await using closing = new AsyncDisposableStack();
    for (const agent of this.#opened.values()) closing.use(agent);
  }

  /**
   * A process that serves lives long: an agent that was opened long ago is opened again for its next message, unless it works on another.
   * Its level is evaluated then, idle sessions are closed, and the tests of its tools that are due run.
   */
  #openForWork(scope: AgentScope): Promise<OpenedAgent> {
    const key = memberKey(scope);
    const before = this.#opened.get(key);
    const age = this.#shared.clock.monotonic() - (this.#openedAt.get(key) ?? 0);
    const isOld = this.#isServing && age > REOPENED_AFTER_MS;
    if (before === undefined || !isOld || this.#startedPost().inWork(key) > 1) return this.open(scope);
    this.#opened.delete(key);
    return this.#opening.run(key, async () => {
      await before.engine.settled();
      await before[Symbol.asyncDispose]();
      return this.#openNow(key, scope);
    });
  }

  async #openNow(key: string, scope: AgentScope): Promise<OpenedAgent> {
    const agent = await this.#openMember(this.#memberOf(scope));
    this.#opened.set(key, agent);
    this.#openedAt.set(key, this.#shared.clock.monotonic());
    return agent;
  }

  async #openMember(member: Member): Promise<OpenedAgent> {
    const { name, namespace } = member;
    const { events, ...options } = this.#options;
    const ancestors = [];
    for (const ancestor of this.#ancestorsOf(member)) ancestors.push((await this.open(ancestor)).agent);
    return openAgent(this.#shared, member, {
      ...options,
      ancestors,
      portsToOthers: (running, models) => this.#startedPost().ports(member, running, models),
      rootOf: (call) => this.#startedPost().rootOf(member, call),
      hasUnended: (session) => this.#startedPost().hasUnended(member, session),
      events: (event, session) => events(event, { name, namespace, ...(session === undefined ? {} : { session }) }),
    });
  }

  /** A child comes back with its parent; one whose parent is not of this run stays stored. What an ended one left is deleted. */
  async #restoreChildren(children: readonly ChildRecord[]): Promise<void> {
    let open = children.filter(({ endedAt }) => endedAt === undefined);
    for (let found = open.length; found > 0; ) {
      const here = open.filter(({ parent }) => this.#members.has(parent));
      for (const { agent, parent } of here) this.#add(agent, parent);
      open = open.filter(({ parent }) => !this.#members.has(parent));
      found = here.length;
    }
    for (const { agent, parent } of children.filter(({ endedAt }) => endedAt !== undefined)) {
      this.#ended.add(agent.metadata.name);
      const policy = this.#policies.get(agent.spec.trustPolicyRef.name);
      if (policy !== undefined)
        await deleteAgentData(this.#shared, createMember({ agent, policy, parent }, this.#shared));
    }
  }

  /** Undefined for an agent whose policy or program is not of this run. */
  #add(agent: Agent, parent: string): Member | undefined {
    const policy = this.#policies.get(agent.spec.trustPolicyRef.name);
    const { agent: named } = agent.spec.model;
    const program = this.#options.agents.find(
      (one) => named !== undefined && one.agent.spec.model.agent === named,
    )?.program;
    if (policy === undefined || (named !== undefined && program === undefined)) return undefined;
    const member = createMember({ agent, policy, parent, program }, this.#shared);
    this.#members.set(memberKey(member), member);
    return member;
  }

  #family({ namespace }: Member): Family {
    return {
      members: () => this.members().filter((member) => member.namespace === namespace),
      find: (name) => this.#members.get(memberKey({ name, namespace })),
      isSuspended: (key) => this.#isSuspended(key),
      manifests: this.#manifests,
      hasEnded: (name) => this.#ended.has(name),
      change: (work) => this.#familyChanges.run(work),
      add: async (agent, parent) => {
        await storeChild(this.#shared.records, namespace, { parent: memberKey(parent), agent });
        const member = this.#add(agent, memberKey(parent));
        if (member === undefined) throw unknownAgent(agent.metadata.name);
        await storeAgentManifests(this.#shared.records, this.#shared.clock, member);
        await this.#startedPost().serve(member);
      },
      end: (child) => this.#end(child),
    };
  }

  /** A specialist whose task has its answer, or whose time is over. */
  #endIfOver(member: Member): void {
    const now = (): number => this.#shared.clock.now().getTime();
    const { inboxes } = this.#startedPost().inboxes;
    if (!isSpecialistOver(member, inboxes, now())) return;
    this.#track(
      this.#familyChanges.run(async () => {
        if (this.#members.get(memberKey(member)) === member) await this.#end(member);
      }),
    );
  }

  #endSpecialists(): void {
    for (const member of this.members()) this.#endIfOver(member);
  }

  /** `settled` waits for it and reports a failure; the next run ends what is left. */
  #track(work: Promise<void>): void {
    const removal = work.finally(() => this.#removals.delete(removal));
    this.#removals.add(removal);
    removal.catch(() => undefined);
  }

  /** Ends the child and all agents below it, the lowest first. What they stored is deleted when their work has ended. */
  async #end(child: Member): Promise<void> {
    const below = this.members().filter(({ parent }) => parent === memberKey(child));
    for (const member of below) await this.#end(member);
    const key = memberKey(child);
    const { records, clock } = this.#shared;
    const endedAt = clock.now().toISOString();
    await storeChild(records, child.namespace, { parent: child.parent ?? '', agent: child.agent, endedAt });
    this.#members.delete(key);
    this.#ended.add(child.name);
    const error = new TemperError('TEMPER_NOT_FOUND', `agent "${child.name}" was ended`);
    const { ended } = await this.#startedPost().remove(key, error);
    this.#track(ended.then(() => this.#delete(child)));
  }

  async #delete(child: Member): Promise<void> {
    const opened = this.#opened.get(memberKey(child));
    this.#opened.delete(memberKey(child));
    await opened?.[Symbol.asyncDispose]();
    await deleteAgentData(this.#shared, child);
  }

  /** A user of a run that ends has to know that the schedule starts no run yet. */
  #onSchedule({ name, namespace }: Member, schedule: OwnSchedule, change: 'created' | 'deleted'): void {
    this.#schedules?.wake();
    if (this.#isServing || change === 'deleted') return;
    const message = `its schedule "${schedule.name}" starts runs only while temper run --serve runs`;
    this.#options.events({ type: 'warning', code: 'TEMPER_SCHEDULE_NOT_SERVED', message }, { name, namespace });
  }

  #ancestorsOf(member: Member): Member[] {
    const parent = member.parent === undefined ? undefined : this.#members.get(member.parent);
    return parent === undefined ? [] : [parent, ...this.#ancestorsOf(parent)];
  }

  #isSuspended(key: string): boolean {
    const member = this.#members.get(key);
    if (member === undefined) return true;
    return [member, ...this.#ancestorsOf(member)].some(
      ({ agent, policy }) => agent.spec.suspend === true || policy.spec.suspend === true,
    );
  }

  #memberOf(scope: AgentScope): Member {
    const member = this.#members.get(memberKey(scope));
    if (member === undefined) throw unknownAgent(scope.name);
    return member;
  }

  #startedPost(): Post {
    if (this.#post === undefined) throw new TypeError('the team has not started');
    return this.#post;
  }
}
