import { join } from 'node:path';
import { describeMigrations } from '@platform/testing';
import { MIGRATIONS } from '../src/database-layout';

describeMigrations(join(__dirname, '../src/migrations'), MIGRATIONS, {
  // A row for each business unit: there are few.
  BusinessUnitFacilities1800000002000: [/UPDATE task\.business_unit_changes/],
});
