import type { AuditTrail } from '../../audit/port.ts';
import { openAudit } from '../../audit/recorded-trail.ts';
import { builtInNames } from '../../engine/built-in.ts';
import { type LedgerBook, openLedgerBook } from '../../ledger/ledger.ts';
import { type Clock, systemClock } from '../../lib/clock.ts';
import { fileRecordStore } from '../../lib/file-record-store.ts';
import { type IdGenerator, ulids } from '../../lib/ids.ts';
import type { RecordStore } from '../../lib/record-store.ts';
import type { JudgeSettings, NamedModelSet } from '../../models/named-models.ts';
import { createSystemNetwork, type Network } from '../../net/dialer.ts';
import type { Sandbox } from '../../sandbox/port.ts';
import { createSupervisor, type Supervisor } from '../../sandbox/supervisor.ts';
import type { Canaries } from '../../tempering/canary/canaries.ts';
import { openRegistry, type Registry } from '../../tempering/registry/registry.ts';
import type { ToolOwner } from '../../tempering/registry/visibility.ts';
import { openSourceStore, type SourceStore } from '../../tempering/withheld/source-store.ts';
import { WithheldSources } from '../../tempering/withheld/withheld-sources.ts';
import { applyLevelDecisions } from '../levels/level-decisions.ts';
import { localCanaries } from '../local-canaries.ts';
import { lockState } from '../lock.ts';
import { ensureStateFormat } from '../state-format.ts';
import type { StateKeys } from '../trust/state-key.ts';
import { LocalUsage } from '../usage/local-usage.ts';
import { trustedKey } from '../trust/trust.ts';

export interface SharedStateOptions {
  /** Absolute path of the state folder. */
  state: string;
  /** The key that signs the state folders of this user. */
  keys: StateKeys;
  models: NamedModelSet;
  /** How judges and reviewers are supervised; absent: no canaries. */
  judges?: JudgeSettings | undefined;
  /** Whether the sources of the tools of this agent are withheld. */
  isWithheld: (owner: ToolOwner) => boolean;
}

/** What the agents of one process share: the state folder with everything that is kept once in it, the sandbox and the models. */
export interface SharedState {
  /** Absolute path. */
  readonly folder: string;
  readonly clock: Clock;
  readonly ids: IdGenerator;
  readonly records: RecordStore;
  readonly audit: AuditTrail;
  readonly registry: Registry;
  readonly sources: SourceStore;
  /** Knows the withheld sources of all agents. */
  readonly withheld: WithheldSources;
  readonly book: LedgerBook;
  readonly usage: LocalUsage;
  readonly models: NamedModelSet;
  readonly canaries: Canaries;
  readonly sandbox: Supervisor;
  readonly openFreshSandbox: () => Promise<{ sandbox: Sandbox; close(): Promise<void> }>;
  /** For the requests of tools. */
  readonly network: Network;
}

/** Locks, checks and opens the state folder. `opening` stops what has started, in reverse order. Throws what `openStandalone` throws. */
export async function openSharedState(
  { state, keys, models, judges, isWithheld }: SharedStateOptions,
  opening: AsyncDisposableStack,
): Promise<SharedState> {
  const clock = systemClock;
  const lock = await lockState(state, 'temper run');
  opening.defer(() => lock.release());
  const records = fileRecordStore(state);
  const key = await trustedKey({ folder: state, records, keys });
  await ensureStateFormat(records, state);
  await applyLevelDecisions(records, state);
  const audit = await openAudit({ records, clock, key });
  opening.defer(() => audit.flush());
  const sources = await openSourceStore({ records, clock, derive: (purpose) => key.derive(purpose) });
  const withheld = new WithheldSources();
  const registry = await openRegistry({
    records,
    audit,
    clock,
    builtIn: builtInNames(),
    sources,
    withheld,
    isWithheld,
  });
  const book = await openLedgerBook(records, clock);
  opening.defer(() => book.close());
  const usage = opening.use(new LocalUsage({ records, clock }));
  const sandbox = opening.use(await createSupervisor({ clock }));
  return {
    folder: state,
    clock,
    ids: ulids,
    records,
    audit,
    registry,
    sources,
    withheld,
    book,
    usage,
    models,
    canaries: localCanaries(records, audit, judges),
    sandbox,
    openFreshSandbox: async () => {
      const fresh = await createSupervisor({ clock, maxRunners: 1 });
      return { sandbox: fresh, close: async () => fresh[Symbol.asyncDispose]() };
    },
    network: createSystemNetwork(),
  };
}
