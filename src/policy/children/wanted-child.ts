import type { ManifestLoader } from '../../api/manifests.ts';
import { API_VERSION } from '../../api/names.ts';
import type { AgentSpec } from '../../api/v1alpha1/agent.ts';
import { TemperError } from '../../lib/errors.ts';
import { isJsonObject, type Json, type JsonObject } from '../../lib/json.ts';
import { printable } from '../../lib/printable.ts';
import type { ChildRequest } from './admission.ts';

/** What an agent asks for with `agent_spawn`. */
export interface WantedChild {
  /** What the child does, in a word; a part of its name. */
  name: string;
  request: ChildRequest;
}

/** Checks manifests; its compiled schemas serve all children of a process. */
export type ManifestCheck = Pick<ManifestLoader, 'validate'>;

/** What an agent says about its child. */
interface ChildManifest {
  name: string;
  prompt: string;
  tools: Json | undefined;
  spec: JsonObject;
}

/** Limit of a manifest that an agent writes, as JSON. */
const MAX_CHILD_MANIFEST_BYTES = 16 * 1_024;
const NAME = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/;

/** Reads the arguments of `agent_spawn`, which a model wrote. Throws TEMPER_TOOL_INPUT_INVALID with the field and the rule. */
export function wantedChild(input: Json, parent: AgentSpec, manifests: ManifestCheck): WantedChild {
  if (!isJsonObject(input)) throw invalid('the arguments are not an object');
  const { name, template, prompt, tools, spec = {} } = input;
  if (typeof name !== 'string' || !NAME.test(name)) {
    throw invalid('name has to consist of lower-case letters, digits and dashes, at most 63');
  }
  if (template !== undefined) {
    if (prompt !== undefined || tools !== undefined || input.spec !== undefined) {
      throw invalid('a copy of a template has its prompt, tools and spec; leave these out, or leave out template');
    }
    if (typeof template !== 'string') throw invalid('template has to be the name of an agent');
    return { name, request: { template } };
  }
  if (typeof prompt !== 'string' || prompt === '') throw invalid('prompt is required without a template');
  if (!isJsonObject(spec)) throw invalid('spec has to be an object');
  return { name, request: { spec: specOf({ name, prompt, tools, spec }, parent, manifests) } };
}

/** Without a model the child has that of its parent; the policy is always that of the parent unless the manifest names one. */
export function specOf(
  { name, prompt, tools, spec }: ChildManifest,
  parent: AgentSpec,
  manifests: ManifestCheck,
): AgentSpec {
  const grants = isJsonObject(spec.grants) ? spec.grants : {};
  const full: JsonObject = {
    trustPolicyRef: { ...parent.trustPolicyRef },
    model: { primary: parent.model.primary },
    ...spec,
    prompt: { system: prompt },
    ...(tools === undefined && spec.grants === undefined
      ? {}
      : { grants: { ...grants, ...(tools === undefined ? {} : { tools }) } }),
  };
  if (Buffer.byteLength(JSON.stringify(full)) > MAX_CHILD_MANIFEST_BYTES) {
    throw invalid(`the manifest has more than ${MAX_CHILD_MANIFEST_BYTES / 1_024} KiB; write a shorter prompt`);
  }
  const object = { apiVersion: API_VERSION, kind: 'Agent', metadata: { name }, spec: full };
  const [problem] = manifests.validate(object);
  if (problem !== undefined) throw invalid(problem.message);
  return full as unknown as AgentSpec;
}

function invalid(why: string): TemperError {
  return new TemperError('TEMPER_TOOL_INPUT_INVALID', printable(`the child cannot be started: ${why}`, 1_000));
}
