import manifest from '../../../package.json' with { type: 'json' };

/**
 * The `User-Agent` of a component, as client-go forms it: `temper-operator/0.1.0 (linux/x64)`. The API server shows it in its audit log, its
 * request metrics and the debug pages of flow control.
 */
export function userAgent(component?: string): string {
  const name = component === undefined ? 'temper' : `temper-${component}`;
  return `${name}/${manifest.version} (${process.platform}/${process.arch})`;
}
