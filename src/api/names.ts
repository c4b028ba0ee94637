/** The API group and version. This file imports nothing, so every module can use it without cost. */
export const GROUP = 'temper.dev';
export const VERSION = 'v1alpha1';
export const API_VERSION = `${GROUP}/${VERSION}`;

/** Providers treat model names without regard to case. */
export function isSameModelName(one: string, other: string): boolean {
  return one.toLowerCase() === other.toLowerCase();
}
