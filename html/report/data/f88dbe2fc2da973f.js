torchcompileShard("f88dbe2fc2da973f",{"means/inference": "H4sIAAAAAAACA6tWSinKTCtRsjLQMzQ1MzYy0lFKSixJzkgtVrKqrq0FAMSytfEfAAAA"});
