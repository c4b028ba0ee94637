import type { CallOptions } from '../lib/call-options.ts';
import type { Skill } from './skill.ts';

/** What a model gets when it loads a skill. */
export interface SkillText extends Pick<Skill, 'name' | 'instructions' | 'examples' | 'source'> {
  /** The paths of its resources. */
  resources: readonly string[];
}

/** A part of one resource. */
export interface ResourceText {
  text: string;
  /** The offset of the next part; absent after the last one. */
  next?: number;
  source?: string;
}

/** The skills that an agent can load. */
export interface Skills {
  /** Read-only and idempotent. Undefined when the agent has no such skill. */
  load(name: string, op: CallOptions): Promise<SkillText | undefined>;
  /**
   * The part of a resource from the offset on, in UTF-16 units. Read-only and idempotent. Undefined when the agent has no such skill;
   * throws TEMPER_TOOL_INPUT_INVALID for a resource that the skill does not have.
   */
  resource(name: string, path: string, offset: number, op: CallOptions): Promise<ResourceText | undefined>;
}
