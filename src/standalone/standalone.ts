import type { JudgeSettings, NamedModelSet } from '../models/named-models.ts';
import type { RecordStore } from '../lib/record-store.ts';
import { expireAbandonedRequests } from './approvals.ts';
import { DecisionWatcher } from './decision-watcher.ts';
import type { AgentScope } from './team/member.ts';
import type { OpenedAgent } from './team/opened-agent.ts';
import { openSharedState } from './team/shared-state.ts';
import { Team, type TeamOptions } from './team/team.ts';
import type { StateKeys } from './trust/state-key.ts';

export interface StandaloneOptions extends TeamOptions {
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
  /** Waits for running promotions and runs of tests of all agents, but not for approvals. */
  settled(): Promise<void>;
}

/** Throws TEMPER_STATE_LOCKED, TEMPER_STATE_UNUSABLE, TEMPER_STATE_UNTRUSTED, TEMPER_STATE_KEY_UNUSABLE, TEMPER_STATE_CORRUPT, TEMPER_AUDIT_CHAIN_INVALID or TEMPER_SANDBOX_UNAVAILABLE, after it has stopped all started components. */
export async function openStandalone(options: StandaloneOptions): Promise<Standalone> {
  await using opening = new AsyncDisposableStack();
  const { state, keys, protectedPaths } = options;
  let team: Team | undefined;
  const shared = await openSharedState(
    { ...options, isWithheld: ({ agent: name, namespace }) => team?.withholds({ name, namespace }) === true },
    opening,
  );
  team = new Team(shared, { ...options, protectedPaths: [state, keys.folder, ...protectedPaths] });
  opening.use(team);
  const opened = team;
  await expireAbandonedRequests(
    shared.records,
    opened.members().map(({ parked }) => parked),
  );
  await opened.storeManifests();
  const watcher = new DecisionWatcher({ state, registry: shared.registry, team: opened, events: options.events });
  opening.defer(() => watcher.stop());
  await watcher.start();
  const all = opening.move();
  return {
    records: shared.records,
    open: (scope) => opened.open(scope),
    settled: () => opened.settled(),
    [Symbol.asyncDispose]: () => all.disposeAsync(),
  };
}
