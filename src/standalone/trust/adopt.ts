import type { AuditTrail } from '../../audit/port.ts';
import { checkpointSignature, openAudit } from '../../audit/recorded-trail.ts';
import { builtInNames } from '../../engine/built-in.ts';
import type { Clock } from '../../lib/clock.ts';
import { fileRecordStore } from '../../lib/file-record-store.ts';
import type { RecordStore } from '../../lib/record-store.ts';
import { ADOPTED } from '../../tempering/registry/activation.ts';
import { openRegistry } from '../../tempering/registry/registry.ts';
import { openSourceStore } from '../../tempering/withheld/source-store.ts';
import { userName } from '../decision-files.ts';
import { lockState } from '../lock.ts';
import { privateFiles } from './private-folder.ts';
import type { StateKeys } from './state-key.ts';

/** Collections that decide: a decision that waits or was made, and promotions that would go on with it. */
const DECIDING = ['decisions', 'approvals', 'approvalrequests', 'promotions'] as const;
const UNPROVEN = 'unproven';

export interface AdoptOptions {
  /** Absolute path of an existing state folder. */
  folder: string;
  keys: StateKeys;
  clock: Clock;
  /** Trust the tools too, and the approvals and promotions that concern them. */
  withTools: boolean;
}

/** What a state folder has after its adoption. */
export interface Adopted {
  records: number;
  /** Names of the forged tools. */
  active: string[];
  inactive: string[];
  /** The number of documents that were moved to `unproven/`. */
  setAside: number;
  sessions: number;
  /** Values in the memory of all agents. */
  memory: number;
  imports: number;
}

/**
 * Takes over a state folder that this user's key did not sign, and signs it. Conversations, memory and usage stay; what decides does not:
 * waiting decisions are set aside, and without `withTools` every tool becomes inactive and approvals and promotions are set aside.
 * A folder that is signed already changes only with `withTools`. Throws TEMPER_AUDIT_CHAIN_INVALID for a broken chain, and TEMPER_STATE_UNTRUSTED for a folder that other users may change.
 */
export async function adoptState({ folder, keys, clock, withTools }: AdoptOptions): Promise<Adopted> {
  const lock = await lockState(folder, 'temper audit --adopt');
  try {
    const files = privateFiles(folder);
    const records = fileRecordStore(folder);
    const key = await keys.findOrCreate();
    const isOwn = (await checkpointSignature(records, key)) === 'valid';
    const audit = await openAudit({ records, clock, key, adopts: !isOwn });
    const collections = withTools ? ['decisions'] : DECIDING;
    const setAside = isOwn ? 0 : await setDecidingAside(records, collections);
    // Nothing proves who approved a level. Agents earn it again by their tasks.
    if (!isOwn && !withTools) await records.deleteCollection('levels');
    if (!isOwn || withTools) await recordAdoption(audit, withTools);
    await audit.flush();
    const sources = await openSourceStore({ records, clock, derive: (purpose) => key.derive(purpose) });
    const registry = await openRegistry({ records, audit, clock, builtIn: builtInNames(), sources });
    const named = (isActive: boolean): string[] => [
      ...new Set(registry.all().flatMap(({ active, artifact }) => (active === isActive ? [artifact.name] : []))),
    ];
    return {
      records: audit.head()?.seq ?? 0,
      active: named(true).sort(),
      inactive: named(false).sort(),
      setAside,
      sessions: (await records.list('sessions')).length,
      memory: files.filter((file) => file.startsWith('memory/')).length,
      imports: (await records.list('imports')).length,
    };
  } finally {
    lock.release();
  }
}

function recordAdoption(audit: AuditTrail, withTools: boolean): Promise<void> {
  const actor = userName(process.geteuid?.());
  const facts = { tools: withTools ? 'active' : 'inactive' };
  return audit.append({ action: ADOPTED, actor, evidence: 'observed', subject: 'state', facts });
}

/** Moves the documents to `unproven/`, where no process reads them. */
async function setDecidingAside(records: RecordStore, collections: readonly string[]): Promise<number> {
  let count = 0;
  for (const collection of collections) {
    for (const { name, value } of await records.list(collection)) {
      await records.put(`${UNPROVEN}/${collection}`, name, value);
      await records.delete(collection, name);
      count += 1;
    }
  }
  return count;
}
