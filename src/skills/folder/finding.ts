/** What is wrong with the folder of a skill, or what of it has no effect. */
export interface SkillFinding {
  level: 'error' | 'warning';
  /** Relative to the folder. */
  file: string;
  /** Stable name of the rule; `docs/reference/skills.md` lists them. */
  rule: string;
  message: string;
  fix: string;
}

export type Report = (finding: SkillFinding) => void;

/** Of one folder: an attacker chooses how much is wrong. */
export const MAX_FINDINGS = 50;

/** Keeps at most `MAX_FINDINGS`, and always an error when there was one: warnings must not hide it. */
export function addFinding(findings: SkillFinding[], finding: SkillFinding): void {
  if (findings.length < MAX_FINDINGS) findings.push(finding);
  else if (finding.level === 'error' && !hasErrors(findings)) findings[MAX_FINDINGS - 1] = finding;
}

export function hasErrors(findings: readonly SkillFinding[]): boolean {
  return findings.some(({ level }) => level === 'error');
}
