/** Thrown when the caller did not prove to be an application. The response is 401. */
export class UnprovenApplication extends Error {
  override readonly name = 'UnprovenApplication';

  /** @param privateDetail the reason, for the audit trail only */
  constructor(readonly privateDetail: string) {
    super('the application is not proven');
  }
}

/** The public detail of the response. */
export const UNPROVEN = 'The application could not be authenticated.';
