import { TemperError } from '../../lib/errors.ts';
import { SingleFlight } from '../../lib/async/single-flight.ts';
import { printable } from '../../lib/printable.ts';
import type { UserDecision } from '../decision-files.ts';
import { storeDecision } from '../stored-decision.ts';
import { type OpenedAgent, type OpenedAgentOptions, openAgent } from './opened-agent.ts';
import {
  type AgentDefinition,
  type AgentScope,
  createMember,
  type Member,
  memberKey,
  withholdsSources,
} from './member.ts';
import type { SharedState } from './shared-state.ts';
import { storeAgentManifests } from './stored-manifests.ts';
import type { TeamEvents } from './team-events.ts';

export interface TeamOptions extends Omit<OpenedAgentOptions, 'events'> {
  /** At least one, all of one namespace. */
  agents: readonly AgentDefinition[];
  events: TeamEvents;
}

/** The agents of this process. An agent is opened for its first work, as a pod is started for the first message. */
export class Team implements AsyncDisposable {
  readonly #shared: SharedState;
  readonly #options: TeamOptions;
  readonly #members: ReadonlyMap<string, Member>;
  readonly #opened = new Map<string, OpenedAgent>();
  readonly #opening = new SingleFlight<OpenedAgent>();
  readonly #lifetime = new AsyncDisposableStack();

  constructor(shared: SharedState, options: TeamOptions) {
    this.#shared = shared;
    this.#options = options;
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

  open(scope: AgentScope): Promise<OpenedAgent> {
    const key = memberKey(scope);
    const opened = this.#opened.get(key);
    if (opened !== undefined) return Promise.resolve(opened);
    return this.#opening.run(key, async () => {
      const member = this.#members.get(key);
      if (member === undefined)
        throw new TemperError('TEMPER_NOT_FOUND', `there is no agent "${printable(scope.name, 253)}"`);
      const { name, namespace } = member;
      const { events, ...options } = this.#options;
      const agent = await openAgent(this.#shared, member, {
        ...options,
        events: (event, session) => events(event, { name, namespace, ...(session === undefined ? {} : { session }) }),
      });
      this.#opened.set(key, this.#lifetime.use(agent));
      return agent;
    });
  }

  /** Stores the manifests of all agents, of those without work too. */
  async storeManifests(): Promise<void> {
    for (const member of this.#members.values())
      await storeAgentManifests(this.#shared.records, this.#shared.clock, member);
  }

  /** Records the decision of a user about a request and resolves the calls that await it. */
  async decide(decision: UserDecision): Promise<void> {
    await storeDecision(this.#shared.records, decision);
    for (const { approvals } of this.#opened.values()) await approvals.decide(decision);
  }

  async settled(): Promise<void> {
    for (const { engine } of this.#opened.values()) await engine.settled();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#lifetime.disposeAsync();
  }
}
