/** The variable's value. @throws {Error} that names it and says what provides it */
export function testVariable(
  name: 'TEST_DATABASE_URL' | 'TEST_RABBITMQ_URL' | 'TEST_RABBITMQ_MANAGEMENT_URL',
): string {
  const value = process.env[name];
  if (value === undefined || value === '') {
    throw new Error(`${name} is not set; the global setup of the integration tests provides it`);
  }
  return value;
}
