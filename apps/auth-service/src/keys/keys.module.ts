import { Module } from '@nestjs/common';
import { JwksController } from './jwks.controller';
import { SigningKeys } from './signing-keys.service';

@Module({ controllers: [JwksController], providers: [SigningKeys], exports: [SigningKeys] })
export class KeysModule {}
