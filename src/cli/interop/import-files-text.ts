import { stringify } from 'yaml';
import type { Import, ImportedFile } from '../../interop/openfang/import-files.ts';
import { reportData, reportMarkdown } from './import-report.ts';

const POLICY_FILE = 'policy.yaml';
const KUSTOMIZATION = { apiVersion: 'kustomize.config.k8s.io/v1beta1', kind: 'Kustomization' };

export function manifestPath(file: ImportedFile): string {
  return `agents/${file.name}.yaml`;
}

/** The files of an import: paths relative to its folder, and texts. */
export function importedFiles({ files, policy }: Import): ReadonlyMap<string, string> {
  const texts = new Map<string, string>();
  const imported = files.filter(({ agent }) => agent !== undefined);
  if (policy !== undefined) {
    const resources = [POLICY_FILE, ...imported.map(manifestPath).sort()];
    texts.set('kustomization.yaml', yaml({ ...KUSTOMIZATION, resources }));
    texts.set(POLICY_FILE, yaml(policy));
  }
  for (const file of imported) texts.set(manifestPath(file), yaml(file.agent));
  const reports = new Set<string>();
  for (const file of [...imported, ...files.filter(({ agent }) => agent === undefined)]) {
    const path = freePath(`reports/${file.name}`, reports);
    texts.set(`${path}.md`, reportMarkdown(file, manifestPath(file)));
    texts.set(`${path}.json`, `${JSON.stringify(reportData(file, manifestPath(file)), null, 2)}\n`);
  }
  return texts;
}

/** Files that are refused may share a name. */
function freePath(path: string, taken: Set<string>): string {
  let free = path;
  for (let number = 2; taken.has(free); number += 1) free = `${path}-${number}`;
  taken.add(free);
  return free;
}

function yaml(value: unknown): string {
  return stringify(value, { lineWidth: 0 });
}
