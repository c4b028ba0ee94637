import { sha256 } from '../../lib/canonical.ts';
import { TemperError } from '../../lib/errors.ts';
import type { Json } from '../../lib/json.ts';
import type { RecordStore } from '../../lib/record-store.ts';
import {
  type CanaryOutcome,
  type JudgeStanding,
  lifted,
  parseStanding,
  standingDocument,
  withOutcome,
} from './standing.ts';

const MAX_ATTEMPTS = 20;
const COLLECTION = 'judges';

/** Stored standings, one document per model, with optimistic concurrency. */
export interface StandingDocuments {
  get(key: string): Promise<{ value: Json | undefined; revision: number } | undefined>;
  /** Undefined when another writer changed the document. `revision` 0: only if the document does not exist. */
  write(key: string, value: Json, revision: number): Promise<number | undefined>;
}

/** The standings of all models in one state folder or installation. Methods throw the errors of the store, and TEMPER_STATE_CORRUPT. */
export interface JudgeStandings {
  get(model: string): Promise<JudgeStanding>;
  /** Adds an outcome; the first canary that passed suspends the model. */
  record(model: string, outcome: CanaryOutcome, id: string): Promise<JudgeStanding>;
  /** Lifts the suspension with this id. Returns the standing; a standing with another suspension stays as it is. */
  lift(model: string, id: string): Promise<JudgeStanding>;
}

export function createJudgeStandings(documents: StandingDocuments): JudgeStandings {
  const change = async (model: string, next: (standing: JudgeStanding) => JudgeStanding): Promise<JudgeStanding> => {
    for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt += 1) {
      const { standing, revision } = await read(documents, model);
      const changed = next(standing);
      if (changed === standing) return standing;
      const written = await documents.write(standingKey(model), standingDocument(changed), revision);
      if (written !== undefined) return changed;
    }
    throw new TemperError(
      'TEMPER_BUS_UNAVAILABLE',
      `the standing of the judge ${model} is written by too many clients at once; try again`,
      { retry: 'backoff' },
    );
  };
  return {
    get: async (model) => (await read(documents, model)).standing,
    record: (model, outcome, id) => change(model, (standing) => withOutcome(standing, outcome, id)),
    lift: (model, id) => change(model, (standing) => (standing.suspension?.id === id ? lifted(standing) : standing)),
  };
}

/** Standings in the state folder: `judges/<hash of the model>.json`. One process writes them. */
export function recordedStandings(records: RecordStore): StandingDocuments {
  return {
    async get(key) {
      const value = await records.get(COLLECTION, key);
      return value === undefined ? undefined : { value, revision: 1 };
    },
    async write(key, value) {
      await records.put(COLLECTION, key, value);
      return 1;
    },
  };
}

/** Every stored standing of a state folder. */
export async function listStandings(records: RecordStore): Promise<JudgeStanding[]> {
  const all = await records.list(COLLECTION);
  return all.flatMap(({ value }) => parseStanding(value) ?? []);
}

/** Model names are compared without case, as everywhere. */
function standingKey(model: string): string {
  return sha256(model.toLowerCase()).slice('sha256:'.length, 'sha256:'.length + 32);
}

async function read(
  documents: StandingDocuments,
  model: string,
): Promise<{ standing: JudgeStanding; revision: number }> {
  const found = await documents.get(standingKey(model));
  if (found === undefined) return { standing: { model, outcomes: [] }, revision: 0 };
  const standing = parseStanding(found.value);
  if (standing !== undefined) return { standing, revision: found.revision };
  throw new TemperError(
    'TEMPER_STATE_CORRUPT',
    `the standing of the judge ${model} is not readable; restore it, or delete it to start its count again`,
  );
}
