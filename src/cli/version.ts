import manifest from '../../package.json' with { type: 'json' };

export const VERSION: string = manifest.version;

export function versionText(): string {
  return `temper ${manifest.version} (node ${process.versions.node})`;
}
