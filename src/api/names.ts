/** The API group and version, free of any import, for rooms that only need to name them. */
export const GROUP = 'temper.dev';
export const VERSION = 'v1alpha1';
export const API_VERSION = `${GROUP}/${VERSION}`;
