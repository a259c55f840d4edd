/** What a sealed application secret is bound to. */
export function applicationSecretPurpose(applicationKey: string): string {
  return `application:${applicationKey}`;
}
