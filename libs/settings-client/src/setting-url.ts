// The `u` flag matches surrogates only where they stand alone; no URL can carry one.
const LONE_SURROGATE = /\p{Cs}/u;

/** Checks a base URL and takes off what would double a slash. @throws {TypeError} unless it is an http(s) URL without query or fragment */
export function normaliseBaseUrl(baseUrl: string): string {
  // Not URL.parse: Node 20 has none.
  const url = URL.canParse(baseUrl) ? new URL(baseUrl) : null;
  const isUsable = url !== null && /^https?:$/.test(url.protocol) && url.search === '' && url.hash === '';
  if (!isUsable || url.username !== '' || url.password !== '')
    throw new TypeError('baseUrl must be an http or https URL without credentials, query and fragment');
  return url.href.replace(/\/+$/, '');
}

/** Where all settings are listed. */
export function allSettingsUrl(baseUrl: string): string {
  return `${baseUrl}/platform/v1/settings`;
}

/** Where one subsystem's settings are listed. @throws {TypeError} for a name that no URL can carry */
export function subsystemUrl(baseUrl: string, subsystemName: string): string {
  return `${baseUrl}/platform/v1/subsystems/${pathSegment('subsystemName', subsystemName)}/settings`;
}

/** Where one setting is. @throws {TypeError} for a name that no URL can carry */
export function settingUrl(baseUrl: string, subsystemName: string, settingName: string): string {
  return `${subsystemUrl(baseUrl, subsystemName)}/${pathSegment('settingName', settingName)}`;
}

function pathSegment(parameter: string, name: string): string {
  // "." and ".." are taken out of every URL before it is sent, however they are escaped.
  if (name === '' || name === '.' || name === '..' || LONE_SURROGATE.test(name))
    throw new TypeError(`${parameter} must be well-formed, not empty, and neither "." nor ".."`);
  return encodeURIComponent(name);
}
