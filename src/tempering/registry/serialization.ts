import { API_VERSION } from '../../api/names.ts';
import type { Condition } from '../../api/v1alpha1/common.ts';
import type { ToolArtifact } from '../../api/v1alpha1/emergenttool.ts';
import type { JudgeVerdict } from '../../forge/types.ts';
import { digestOf, type Digest, isDigest } from '../../lib/canonical.ts';
import { isJsonObject, type Json, type JsonObject, member } from '../../lib/json.ts';
import type { RegisteredTool } from '../types.ts';

/** One tool in storage: the object for users, the internal evidence beside it, and the withheld source. */
export interface ToolDocuments {
  tool: JsonObject;
  evidence: JsonObject;
  source?: string;
}

export function artifactDigest(artifact: ToolArtifact): Digest {
  return digestOf(artifact as unknown as JsonObject);
}

/** Digest of the fields that an acceptance attests. A stored tool with a change in any of them no longer matches its acceptance. */
export function recordDigest(tool: RegisteredTool): Digest {
  const { object, digest, tier, owner, contributors, verdicts, authorModel, sourceWithheld, acceptedAt } = tool;
  const attested = { object, digest, tier, owner, contributors, verdicts, authorModel, sourceWithheld, acceptedAt };
  return digestOf(attested as unknown as JsonObject);
}

export function toDocuments(tool: RegisteredTool, now: string): ToolDocuments {
  const { source, ...withoutSource } = tool.artifact.implementation;
  const artifact = tool.sourceWithheld ? { ...tool.artifact, implementation: withoutSource } : tool.artifact;
  const name = tool.object.slice(tool.object.lastIndexOf('/') + 1);
  const object = {
    apiVersion: API_VERSION,
    kind: tool.tier === 'Session' ? 'SessionTool' : 'EmergentTool',
    metadata: {
      name,
      namespace: tool.owner.namespace,
      creationTimestamp: tool.acceptedAt,
      ...(tool.tier === 'Shared' ? {} : { labels: { [`${API_VERSION.split('/')[0]}/agent`]: tool.owner.agent } }),
    },
    spec: { artifact, digest: tool.digest, tier: tool.tier, contributors: tool.contributors },
    status: { active: tool.active, conditions: conditionsOf(tool, now) },
  };
  const { owner, verdicts, authorModel, sourceWithheld, acceptedAt } = tool;
  return {
    tool: object as unknown as JsonObject,
    evidence: { owner, verdicts, authorModel, sourceWithheld, acceptedAt } as unknown as JsonObject,
    ...(tool.sourceWithheld && source !== undefined ? { source } : {}),
  };
}

function conditionsOf(tool: RegisteredTool, now: string): Condition[] {
  const active: Condition = {
    type: 'Active',
    status: tool.active ? 'True' : 'False',
    lastTransitionTime: now,
    reason: tool.active ? 'Accepted' : 'Inactive',
    message: tool.inactiveReason ?? 'accepted and in service',
  };
  if (!tool.sourceWithheld) return [active];
  const message =
    'the source is not stored in the object (forge.persistSource is false), so the tool can be neither shared nor exported';
  return [active, { type: 'Shareable', status: 'False', lastTransitionTime: now, reason: 'SourceWithheld', message }];
}

/**
 * Parses a stored tool. The members are untrusted: the caller must compare `artifactDigest` and `recordDigest` with the
 * acceptance on the audit chain. Returns undefined when the documents do not have the shape of a tool.
 */
export function fromDocuments(object: string, documents: { tool: Json; evidence: Json }): RegisteredTool | undefined {
  const spec = member(documents.tool, 'spec');
  const stored = member(spec, 'artifact');
  const digest = member(spec, 'digest');
  const tier = member(spec, 'tier');
  const contributors = member(spec, 'contributors');
  const { evidence } = documents;
  const verdicts = member(evidence, 'verdicts');
  if (!isJsonObject(stored) || !isJsonObject(stored.implementation) || !isDigest(digest)) return undefined;
  if (tier !== 'Session' && tier !== 'Agent' && tier !== 'Shared') return undefined;
  if (!Array.isArray(contributors) || !Array.isArray(verdicts)) return undefined;
  return {
    object,
    artifact: stored as unknown as ToolArtifact,
    digest,
    tier,
    owner: ownerOf(member(evidence, 'owner')),
    contributors: contributors.map(String),
    verdicts: verdicts as unknown as JudgeVerdict[],
    authorModel: stringAt(evidence, 'authorModel'),
    sourceWithheld: member(evidence, 'sourceWithheld') === true,
    acceptedAt: stringAt(evidence, 'acceptedAt'),
    active: false,
  };
}

function ownerOf(value: Json | undefined): RegisteredTool['owner'] {
  return {
    agent: stringAt(value, 'agent'),
    namespace: stringAt(value, 'namespace'),
    session: stringAt(value, 'session'),
  };
}

function stringAt(value: Json | undefined, key: string): string {
  const text = member(value, key);
  return typeof text === 'string' ? text : '';
}
