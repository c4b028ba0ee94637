/** The API group and version. This file imports nothing, so every module can use it without cost. */
export const GROUP = 'temper.dev';
export const VERSION = 'v1alpha1';
export const API_VERSION = `${GROUP}/${VERSION}`;

/** Providers treat model names without regard to case. */
export function isSameModelName(one: string, other: string): boolean {
  return one.toLowerCase() === other.toLowerCase();
}

/** The members of `spec.model` of an Agent that name models. */
interface NamedModels {
  primary: string;
  routing?: { simple?: string; medium?: string; complex?: string };
  fallbacks?: readonly string[];
}

/** Every model that an Agent names, each once, the primary one first. */
export function modelNames({ primary, routing = {}, fallbacks = [] }: NamedModels): string[] {
  const { simple, medium, complex } = routing;
  return [...new Set([primary, simple, medium, complex, ...fallbacks])].filter((name) => name !== undefined);
}
