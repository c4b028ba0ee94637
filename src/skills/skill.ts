import type { Capability } from '../api/v1alpha1/capability.ts';

/** A text beside the instructions of a skill. */
interface SkillResource {
  /** Relative, without `.` and `..`. */
  path: string;
  text: string;
}

/** Instructions for a model, and the texts that it can read with them. */
export interface Skill {
  name: string;
  instructions: string;
  examples: readonly string[];
  resources: readonly SkillResource[];
  /** Where it was imported from; absent for a skill that the team wrote. */
  source?: string;
}

/** The skill of a Capability; undefined for another type, and for one without a text. */
export function skillOf({ metadata, spec }: Pick<Capability, 'metadata' | 'spec'>): Skill | undefined {
  const { type, content, examples = [], resources = [], source } = spec;
  if (type !== 'Skill' || content === undefined) return undefined;
  return {
    name: metadata.name,
    instructions: content,
    examples,
    resources,
    ...(source === undefined ? {} : { source }),
  };
}
