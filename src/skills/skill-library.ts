import type { Capability } from '../api/v1alpha1/capability.ts';
import type { Skills } from './port.ts';
import { resourceText, skillText } from './read-text.ts';
import { type Skill, skillOf } from './skill.ts';

/** The skills among the Capabilities of this moment. */
export function skillLibrary(capabilities: () => readonly Capability[]): Skills {
  const find = (name: string): Skill | undefined => {
    const found = capabilities().find((one) => one.spec.type === 'Skill' && one.metadata.name === name);
    return found === undefined ? undefined : skillOf(found);
  };
  return {
    async load(name) {
      const skill = find(name);
      return skill === undefined ? undefined : skillText(skill);
    },
    async resource(name, path, offset) {
      const skill = find(name);
      return skill === undefined ? undefined : resourceText(skill, path, offset);
    },
  };
}
