torchcompileShard("5322e602e84c4967",{"problems": "H4sIAAAAAAACA6tWKs9ILUpVsoqO1VEqSk0szs8DsWsBUJzfkhgAAAA="});
