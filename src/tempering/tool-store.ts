import type { Audit } from '../audit/port.ts';
import type { Json } from '../lib/json.ts';
import type { RecordStore } from '../lib/records.ts';
import type { Activation, ActivationLedger } from './activation.ts';
import { artifactDigest, fromDocuments, recordDigest, toDocuments } from './documents.ts';
import { hexOf } from './object-name.ts';
import { sessionSegment } from './scopes.ts';
import type { RegisteredTool } from './types.ts';

/**
 * Tools as documents. `tools/<object>` is the object of tiers Agent and Shared, `sessions/<id>/tools/<object>` that of tier Session;
 * beside each stands an `evidence` collection with owner and verdicts, and `sources/<digest>` holds a source that was withheld.
 */
export interface ToolStore {
  write(tool: RegisteredTool, now: string): Promise<void>;
  remove(tool: RegisteredTool): Promise<void>;
  /** Everything stored, active only where the ledger says so and the documents are what was accepted. */
  load(ledger: ActivationLedger): Promise<RegisteredTool[]>;
  dropSession(session: string): Promise<void>;
}

export function createToolStore(records: RecordStore): ToolStore {
  return {
    async write(tool, now) {
      const { collection, name, evidence } = placesOf(tool.object);
      const documents = toDocuments(tool, now);
      if (documents.source !== undefined) await records.put('sources', hexOf(tool.digest), documents.source);
      await records.put(evidence, name, documents.evidence);
      await records.put(collection, name, documents.tool);
    },
    async remove(tool) {
      const { collection, name, evidence } = placesOf(tool.object);
      await records.delete(collection, name);
      await records.delete(evidence, name);
    },
    async load(ledger) {
      const found = await readCollection(records, 'tools', ledger);
      for (const session of sessionsOf(ledger)) {
        found.push(...(await readCollection(records, `sessions/${sessionSegment(session)}/tools`, ledger)));
      }
      return found;
    },
    async dropSession(session) {
      const folder = `sessions/${sessionSegment(session)}`;
      await records.drop(`${folder}/tools`);
      await records.drop(`${folder}/evidence`);
    },
  };
}

function placesOf(object: string): { collection: string; name: string; evidence: string } {
  const cut = object.lastIndexOf('/');
  const collection = object.slice(0, cut);
  return { collection, name: object.slice(cut + 1), evidence: collection.replace(/tools$/, 'evidence') };
}

function sessionsOf(ledger: ActivationLedger): Set<string> {
  const sessions = new Set<string>();
  for (const { session } of ledger.byObject.values()) if (session !== undefined) sessions.add(session);
  return sessions;
}

async function readCollection(
  records: RecordStore,
  collection: string,
  ledger: ActivationLedger,
): Promise<RegisteredTool[]> {
  const found: RegisteredTool[] = [];
  for (const { name, value } of await records.list(collection)) {
    const object = `${collection}/${name}`;
    const evidence = (await records.get(placesOf(object).evidence, name)) ?? null;
    const tool = fromDocuments(object, { tool: value, evidence, ...(await withheldSource(records, value, evidence)) });
    if (tool !== undefined) found.push({ ...tool, ...standing(tool, ledger.byObject.get(object)) });
  }
  return found;
}

async function withheldSource(records: RecordStore, tool: Json, evidence: Json): Promise<{ source?: Json }> {
  const read = fromDocuments('', { tool, evidence });
  if (read?.sourceWithheld !== true) return {};
  const source = await records.get('sources', hexOf(read.digest));
  return source === undefined ? {} : { source };
}

/** The files propose, the chain decides; any difference between the two and the tool stays out. */
function standing(
  tool: RegisteredTool,
  activation: Activation | undefined,
): { active: boolean; inactiveReason?: string } {
  const inactive = (inactiveReason: string): { active: false; inactiveReason: string } => ({
    active: false,
    inactiveReason,
  });
  if (activation === undefined) return inactive('no acceptance of it is on record');
  if (!activation.active) return inactive(activation.reason ?? 'taken out of service');
  if (digestOrNone(() => artifactDigest(tool.artifact)) !== tool.digest)
    return inactive('its content does not have its digest');
  if (activation.digest !== tool.digest || digestOrNone(() => recordDigest(tool)) !== activation.record) {
    return inactive('it is not the tool that was accepted');
  }
  return { active: true };
}

/** A document edited by hand may hold what has no canonical form, and so no digest. */
function digestOrNone(compute: () => string): string | undefined {
  try {
    return compute();
  } catch (error) {
    if (error instanceof RangeError) return undefined;
    throw error;
  }
}

/** What the chain is told when a tool becomes active. */
export async function recordActivation(
  audit: Audit,
  tool: RegisteredTool,
  how: { action: 'tool.accepted' | 'tool.promoted'; actor: string; supersedes: readonly RegisteredTool[] },
): Promise<void> {
  const { agent, namespace, session } = tool.owner;
  const verdict = tool.verdicts.at(-1);
  await audit.append({
    action: how.action,
    actor: how.actor,
    evidence: 'observed',
    subject: tool.digest,
    facts: {
      tool: tool.artifact.name,
      object: tool.object,
      tier: tool.tier,
      agent,
      namespace,
      session,
      record: recordDigest(tool),
      ...(verdict === undefined
        ? {}
        : { model: verdict.model, promptDigest: verdict.promptDigest, confidence: verdict.confidence }),
      ...(how.supersedes.length === 0 ? {} : { supersedes: how.supersedes.map(({ object }) => object) }),
    },
  });
}
