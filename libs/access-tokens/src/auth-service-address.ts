/** The address of one of auth-service's routes (path without leading slash), below whatever path the service is published under. */
export function authServiceAddress(authServiceUrl: string, path: string): URL {
  return new URL(path, authServiceUrl.endsWith('/') ? authServiceUrl : `${authServiceUrl}/`);
}
