import type { Audit } from '../../audit/port.ts';
import type { Json } from '../../lib/json.ts';
import type { RecordStore } from '../../lib/record-store.ts';
import { sessionPath } from '../../tools/session-path.ts';
import { type Activation, type ActivationLedger, DROPPED } from './activation.ts';
import { artifactDigest, fromDocuments, recordDigest, toDocuments } from './serialization.ts';
import { hexOf } from './object-name.ts';
import { sessionCollections } from './visibility.ts';
import type { RegisteredTool, ToolScope } from '../types.ts';
import { verdictFacts } from './verdict-facts.ts';

/**
 * Stores tools as documents: `tools/<object>` for tiers Agent and Shared, `sessions/<namespace>_<agent>_<session>/tools/<object>` for tier
 * Session.
 * An `evidence` collection beside each of them has owner and verdicts; `sources/<digest>` has a withheld source.
 */
export interface ToolDocumentStore {
  write(tool: RegisteredTool, now: string): Promise<void>;
  remove(tool: RegisteredTool): Promise<void>;
  /** All stored tools. A tool is active only when the activation ledger says so and its documents match the acceptance. */
  load(ledger: ActivationLedger): Promise<RegisteredTool[]>;
  deleteSession(session: ToolScope): Promise<void>;
}

export function createToolDocumentStore(records: RecordStore): ToolDocumentStore {
  return {
    async write(tool, now) {
      const { collection, name, evidence } = recordPathsOf(tool.object);
      const documents = toDocuments(tool, now);
      if (documents.source !== undefined) await records.put('sources', hexOf(tool.digest), documents.source);
      await records.put(evidence, name, documents.evidence);
      await records.put(collection, name, documents.tool);
    },
    async remove(tool) {
      const { collection, name, evidence } = recordPathsOf(tool.object);
      await records.delete(collection, name);
      await records.delete(evidence, name);
    },
    async load(ledger) {
      const tools = await readCollection(records, 'tools', ledger);
      for (const session of sessionsOf(ledger)) {
        tools.push(...(await readCollection(records, sessionCollections(session).tools, ledger)));
      }
      return tools;
    },
    async deleteSession(session) {
      const { tools, evidence } = sessionCollections(session);
      await records.deleteCollection(tools);
      await records.deleteCollection(evidence);
    },
  };
}

function recordPathsOf(object: string): { collection: string; name: string; evidence: string } {
  const cut = object.lastIndexOf('/');
  const collection = object.slice(0, cut);
  return { collection, name: object.slice(cut + 1), evidence: collection.replace(/tools$/, 'evidence') };
}

function sessionsOf(ledger: ActivationLedger): ToolScope[] {
  const sessions = new Map<string, ToolScope>();
  for (const { session, agent, namespace } of ledger.byObject.values()) {
    if (session === undefined) continue;
    const scope = { agent, namespace, session };
    sessions.set(sessionPath(scope), scope);
  }
  return [...sessions.values()];
}

async function readCollection(
  records: RecordStore,
  collection: string,
  ledger: ActivationLedger,
): Promise<RegisteredTool[]> {
  const tools: RegisteredTool[] = [];
  for (const { name, value } of await records.list(collection)) {
    const object = `${collection}/${name}`;
    const evidence = (await records.get(recordPathsOf(object).evidence, name)) ?? null;
    const tool = fromDocuments(object, { tool: value, evidence, ...(await withheldSource(records, value, evidence)) });
    if (tool !== undefined) tools.push({ ...tool, ...activeStateOf(tool, ledger.byObject.get(object)) });
  }
  return tools;
}

async function withheldSource(records: RecordStore, tool: Json, evidence: Json): Promise<{ source?: Json }> {
  const read = fromDocuments('', { tool, evidence });
  if (read?.sourceWithheld !== true) return {};
  const source = await records.get('sources', hexOf(read.digest));
  return source === undefined ? {} : { source };
}

/** The audit chain decides whether a tool is active; a document that differs from its acceptance makes the tool inactive. */
function activeStateOf(
  tool: RegisteredTool,
  activation: Activation | undefined,
): { active: boolean; inactiveReason?: string } {
  const inactive = (inactiveReason: string): { active: false; inactiveReason: string } => ({
    active: false,
    inactiveReason,
  });
  if (activation === undefined) return inactive('the audit chain has no acceptance of it');
  if (!activation.active) return inactive(activation.reason ?? 'demoted');
  if (tryDigest(() => artifactDigest(tool.artifact)) !== tool.digest)
    return inactive('its content does not match its digest');
  if (activation.digest !== tool.digest || tryDigest(() => recordDigest(tool)) !== activation.record) {
    return inactive('it differs from the tool that was accepted');
  }
  return { active: true };
}

/** A manually edited document can contain values without a canonical form; it has no digest. */
function tryDigest(compute: () => string): string | undefined {
  try {
    return compute();
  } catch (error) {
    if (error instanceof RangeError) return undefined;
    throw error;
  }
}

interface HowActivated {
  action: 'tool.accepted' | 'tool.promoted';
  actor: string;
  supersedes: readonly RegisteredTool[];
  /** Digest of the policy that allowed it. */
  policyRevision?: string | undefined;
}

/** Appends the audit record that activates a tool. */
export async function recordActivation(audit: Audit, tool: RegisteredTool, how: HowActivated): Promise<void> {
  const { agent, namespace, session } = tool.owner;
  const { policyRevision, supersedes } = how;
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
      verdicts: tool.verdicts.map(verdictFacts),
      ...(policyRevision === undefined ? {} : { policyRevision }),
      ...(supersedes.length === 0 ? {} : { supersedes: supersedes.map(({ object }) => object) }),
    },
  });
}

/** Appends the audit record that removes a dropped tool. */
export async function recordDrop(audit: Audit, tool: RegisteredTool): Promise<void> {
  const { agent, namespace, session } = tool.owner;
  await audit.append({
    action: DROPPED,
    actor: `agent/${agent}`,
    evidence: 'observed',
    subject: tool.digest,
    facts: { tool: tool.artifact.name, object: tool.object, agent, namespace, session },
  });
}
